package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// commandName is how the plugin is called.
const commandName = "kubectl dnsmesh"

// newRoot returns the command with all its subcommands.
func newRoot(streams genericiooptions.IOStreams) *cobra.Command {
	config := genericclioptions.NewConfigFlags(true)
	root := &cobra.Command{
		Use:   "kubectl-dnsmesh",
		Short: "Find out which names go wrong in a cluster, for whom, and how to mend it",
		Long: `Find out which names go wrong in a cluster, for whom, and how to mend it.

doctor judges the host names that workloads use, the Services of type ExternalName, and the Corefile of the DNS server,
live or from files; trace follows one name. Nothing is written to the cluster, and Secrets are never read.`,
		Example: `  # Judge the cluster of the current context
  kubectl dnsmesh doctor

  # Follow one name, as a pod of a workload would look it up
  kubectl dnsmesh trace ledger --from deploy/api -n payments

  # Judge what was saved of a cluster
  kubectl dnsmesh snapshot > cluster.json.gz
  kubectl dnsmesh doctor -f cluster.json.gz

  # Say more about a finding
  kubectl dnsmesh explain DM1002`,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: commandName},
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return withHint(err, "see %s --help", cmd.CommandPath())
	})
	config.AddFlags(root.PersistentFlags())
	// The default is computed from the home directory, which is nobody's business in help and documents.
	root.PersistentFlags().Lookup("cache-dir").DefValue = "$HOME/.kube/cache"
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { help(cmd) })
	root.AddCommand(
		newDoctor(config, streams),
		newExplain(streams),
		newSnapshot(config, streams),
		newTrace(config, streams),
		newVersion(streams),
		newOptions(streams),
	)
	completeConfig(root, config)
	for _, c := range root.Commands() {
		c.Args = withUsage(c.Args)
	}
	return root
}

// withUsage adds to an error about arguments where to read about them.
func withUsage(check cobra.PositionalArgs) cobra.PositionalArgs {
	if check == nil {
		return nil
	}
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return withHint(err, "see %s --help", cmd.CommandPath())
		}
		return nil
	}
}

// oneOf refuses a value that is not in a list.
func oneOf(flag, value string, allowed []string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return withHint(fmt.Errorf("--%s %q is none of %s", flag, value, strings.Join(allowed, ", ")), "see %s --help", commandName)
}
