package recipes

// lossKeys say what networks of pictures minimise.
var lossKeys = []string{"model.loss", "model.bce_threshold", "model.bce_sum_classes"}
