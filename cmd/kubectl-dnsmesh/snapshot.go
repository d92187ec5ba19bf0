package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster/load"
)

// snapshotOptions are the flags of snapshot.
type snapshotOptions struct {
	genericiooptions.IOStreams
	source sourceOptions
	output string
	redact bool
}

// newSnapshot returns the command snapshot.
func newSnapshot(config *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &snapshotOptions{IOStreams: streams, source: sourceOptions{config: config, IOStreams: streams}}
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Save what doctor reads of a cluster",
		Long: `Save what doctor reads of a cluster, as compressed JSON. doctor -f on that file gives the findings that the cluster
gave. Secrets are not in it, nor is anything that no check reads; but values of environment variables, arguments and
ConfigMaps are, as they stand, and some hold passwords.

--redact replaces the names of namespaces, objects and hosts by hashes, the same name always by the same hash, and
leaves out every value of environment variables, arguments and ConfigMaps that is no host name, so that a snapshot can be
handed to somebody else. Names of variables and flags, and private addresses, stay. The hashes of two runs differ.`,
		Example: `  kubectl dnsmesh snapshot > cluster.json.gz
  kubectl dnsmesh snapshot --redact -o cluster.json.gz
  kubectl dnsmesh doctor -f cluster.json.gz`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.source.complete(cmd); err != nil {
				return err
			}
			return o.snapshot(cmd.Context())
		},
	}
	o.source.addFlags(cmd)
	for _, flag := range []string{"contexts", "all-namespaces", "dns", "coredns-version", "cluster-domain"} {
		cobra.CheckErr(cmd.Flags().MarkHidden(flag))
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "File to write (default standard output)")
	cmd.Flags().BoolVar(&o.redact, "redact", false, "Replace names by hashes and leave out all values that are no host names")
	cobra.CheckErr(cmd.MarkFlagFilename("output"))
	return cmd
}

func (o *snapshotOptions) snapshot(ctx context.Context) error {
	if _, ok := terminal(o.Out); ok && o.output == "" {
		return withHint(errors.New("a snapshot is compressed and would garble the terminal"), "%s snapshot > cluster.json.gz", commandName)
	}
	snapshots, err := o.source.load(ctx)
	if err != nil {
		return err
	}
	if len(snapshots) != 1 {
		return errors.New("a snapshot is of one cluster")
	}
	s := snapshots[0]
	if o.redact {
		key := make([]byte, 32)
		if _, err := rand.Read(key); err != nil {
			return fmt.Errorf("making a key: %w", err)
		}
		s = load.Redact(s, key)
	}
	if o.output == "" {
		return writing(load.Write(o.Out, s, version))
	}
	return writeFile(o.output, func(w io.Writer) error { return load.Write(w, s, version) })
}

func writing(err error) error {
	if err != nil {
		return fmt.Errorf("writing the snapshot: %w", err)
	}
	return nil
}

// writeFile writes a file whole or not at all. Only its owner can read it: a snapshot tells much about a cluster.
func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".dnsmesh-*")
	if err != nil {
		return writing(err)
	}
	defer os.Remove(file.Name())
	err = write(file)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return writing(err)
	}
	return writing(os.Rename(file.Name(), path))
}
