package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gotrain/gotrain/recipes"
)

// completeRecipes offers the recipes in the binary, next to files.
func completeRecipes(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, n := range recipes.List() {
		out = append(out, n+"\t"+recipes.Summary(n))
	}
	return out, cobra.ShellCompDirectiveDefault
}

// completeSet offers keys of a recipe, and their values after the =.
func completeSet(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	directive := cobra.ShellCompDirectiveNoFileComp
	var out []string
	for _, c := range recipes.Complete(word) {
		if !c.Final {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		out = append(out, strings.TrimSuffix(c.Text+"\t"+c.Doc, "\t"))
	}
	if strings.HasSuffix(word, "_from=") || strings.HasPrefix(word, "data.root=") || strings.HasPrefix(word, "text.tokenizer=") {
		return out, cobra.ShellCompDirectiveDefault // files
	}
	return out, directive
}

// bashValues works around bash, which starts a new word at "=": only the value of section.key=value may be inserted.
const bashValues = `
__gotrain_values()
{
    __start_gotrain "$@"
    local word="${COMP_LINE:0:$COMP_POINT}" i before
    word="${word##* }"
    if [[ "$COMP_WORDBREAKS" == *"="* && "$word" == *=* && "$word" != -* ]]; then
        before="${word%%=*}="
        for i in "${!COMPREPLY[@]}"; do
            COMPREPLY[i]="${COMPREPLY[i]#"$before"}"
        done
    fi
}
complete -o default -o nospace -F __gotrain_values gotrain
`

// fixCompletion teaches bash's script about section.key=value.
func (a *app) fixCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	c, _, err := root.Find([]string{"completion", "bash"})
	if err != nil || c.Name() != "bash" {
		return
	}
	plain := false
	c.RunE = func(c *cobra.Command, _ []string) error {
		if f := c.Flags().Lookup("no-descriptions"); f != nil {
			plain = f.Value.String() == "true"
		}
		var b bytes.Buffer
		if err := c.Root().GenBashCompletionV2(&b, !plain); err != nil {
			return err
		}
		_, err := fmt.Fprint(a.out, b.String(), bashValues)
		return err
	}
}
