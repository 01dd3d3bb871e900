package recipes

// movedKeys are keys that stood in the section of a family in older versions, by their old names.
var movedKeys = map[string]string{"vit.drop_path": "model.drop_path"}

// moved is the field that a file of an older version sets by its old name; nil: there is none. Checkpoints hold whole recipes, with both names, of which the
// old one acted: sections are read in the order of their names, so it is the last.
func (r *Recipe) moved(section, key string) *field {
	if section != r.Model.Name {
		return nil
	}
	return byKey()[movedKeys[key]]
}
