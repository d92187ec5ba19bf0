package main

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// completeConfig gives the flags of kubectl that the plugin shares their completions: names of contexts, clusters and
// users from the kubeconfig, namespaces from the cluster.
func completeConfig(root *cobra.Command, config *genericclioptions.ConfigFlags) {
	fromKubeconfig := func(names func() []string) cobra.CompletionFunc {
		return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return names(), cobra.ShellCompDirectiveNoFileComp
		}
	}
	register := func(flag string, f cobra.CompletionFunc) {
		if root.PersistentFlags().Lookup(flag) != nil {
			cobra.CheckErr(root.RegisterFlagCompletionFunc(flag, f))
		}
	}
	register("context", fromKubeconfig(func() []string { return contextNames(config) }))
	register("cluster", fromKubeconfig(func() []string {
		raw, err := config.ToRawKubeConfigLoader().RawConfig()
		if err != nil {
			return nil
		}
		return sortedKeys(raw.Clusters)
	}))
	register("user", fromKubeconfig(func() []string {
		raw, err := config.ToRawKubeConfigLoader().RawConfig()
		if err != nil {
			return nil
		}
		return sortedKeys(raw.AuthInfos)
	}))
	register("namespace", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return namespaceNames(cmd.Context(), config), cobra.ShellCompDirectiveNoFileComp
	})
}

func contextNames(config *genericclioptions.ConfigFlags) []string {
	raw, err := config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil
	}
	return sortedKeys(raw.Contexts)
}

// namespaceNames asks the cluster, for at most as long as somebody waits for a completion.
func namespaceNames(ctx context.Context, config *genericclioptions.ConfigFlags) []string {
	rest, err := config.ToRESTConfig()
	if err != nil {
		return nil
	}
	client, err := corev1.NewForConfig(rest)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	list, err := client.Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	slices.Sort(names)
	return names
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
