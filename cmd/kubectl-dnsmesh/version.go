package main

import (
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// newVersion returns the command version.
func newVersion(streams genericiooptions.IOStreams) *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of the plugin",
		Args:    cobra.NoArgs,
		Example: "  kubectl dnsmesh version -o json",
		RunE: func(*cobra.Command, []string) error {
			switch output {
			case "":
				_, err := fmt.Fprintf(streams.Out, "%s %s, %s %s/%s\n", commandName, version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
				return err
			case "json":
				return json.NewEncoder(streams.Out).Encode(map[string]string{
					"version": version, "goVersion": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
				})
			}
			return oneOf("output", output, []string{"json"})
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "Output format: json")
	return cmd
}
