package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose/checks"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// newExplain returns the command explain.
func newExplain(streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "explain CODE...",
		Short: "Say what a code means, why it matters and how to mend it",
		Args:  cobra.MinimumNArgs(1),
		Example: `  kubectl dnsmesh explain DM1002
  kubectl dnsmesh explain dm2001 dm2002`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return codeCompletions(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			for i, arg := range args {
				code := checks.Find(arg)
				if code == nil {
					return withHint(fmt.Errorf("there is no code %q", arg), "%s doctor --list-checks lists them", commandName)
				}
				if i > 0 {
					fmt.Fprintln(streams.Out)
				}
				fmt.Fprintf(streams.Out, "%s  %s  %s\n\n", code.ID, strings.ToUpper(code.Severity.String()), code.Title)
				newPage(streams.Out).paragraphs(code.Doc)
			}
			return nil
		},
	}
}

// completeList completes the last word of a list with commas.
func completeList(words func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		front := typed[:strings.LastIndexByte(typed, ',')+1]
		var list []string
		for _, w := range words() {
			list = append(list, front+w)
		}
		return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// severityCompletions are all values of --severity.
func severityCompletions() []string {
	var words []string
	for _, c := range checks.Codes() {
		for _, s := range []finding.Severity{finding.Error, finding.Warning, finding.Info} {
			words = append(words, c.ID+"="+s.String())
		}
	}
	return words
}

// codeCompletions are all codes with their titles, as cobra wants completions.
func codeCompletions() []string {
	var words []string
	for _, c := range checks.Codes() {
		words = append(words, cobra.CompletionWithDesc(c.ID, c.Title))
	}
	return words
}
