package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// help writes the help of a command, wrapped for the screen. The flags that the plugin shares with kubectl are many and
// well known, so they have a command of their own, as in kubectl.
func help(cmd *cobra.Command) {
	p := newPage(cmd.OutOrStdout())
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	p.paragraphs(text)
	p.write("\nUsage:\n")
	if cmd.Runnable() {
		p.write("  " + cmd.UseLine() + "\n")
	}
	if cmd.HasAvailableSubCommands() {
		p.write("  " + cmd.CommandPath() + " [command]\n")
	}
	if cmd.Example != "" {
		p.write("\nExamples:\n" + strings.TrimRight(cmd.Example, "\n") + "\n")
	}
	if cmd.HasAvailableSubCommands() {
		p.write("\nCommands:\n")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				p.hang(fmt.Sprintf("  %-*s  ", cmd.NamePadding(), c.Name()), plain, c.Short)
			}
		}
	}
	flags := cmd.LocalFlags()
	if !cmd.HasParent() {
		flags = pflag.NewFlagSet("", pflag.ContinueOnError)
	}
	if flags.HasAvailableFlags() {
		p.write("\nFlags:\n" + flags.FlagUsagesWrapped(p.width))
	}
	p.write("\n")
	if cmd.HasAvailableSubCommands() {
		p.hang("", plain, fmt.Sprintf("%s COMMAND --help says more about a command.", cmd.CommandPath()))
	}
	p.hang("", plain, commandName+" options lists the flags of kubectl that every command takes.")
}

// newOptions returns the command that lists the flags which all commands share.
func newOptions(streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the flags that all commands take",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p := newPage(streams.Out)
			p.write("The following flags work with every command:\n\n")
			p.write(cmd.Root().PersistentFlags().FlagUsagesWrapped(p.width))
			return p.err
		},
	}
}
