package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/trace"
)

// The values of flags of trace.
var (
	traceFormats  = []string{"table", "json", "yaml", "mermaid"}
	resolverWords = []string{"all", "glibc", "musl", "go"}
	policyWords   = []string{
		string(resolve.ClusterFirst), string(resolve.ClusterFirstWithHostNet), string(resolve.PolicyDefault), string(resolve.PolicyNone),
	}
	typeWords = []string{"A", "AAAA", "CNAME", "MX", "NS", "PTR", "SRV", "TXT"}
)

// clientKinds are the kinds that --from takes, by the words of kubectl for them.
var clientKinds = map[string]string{
	"pod": "Pod", "po": "Pod", "pods": "Pod",
	"deployment": "Deployment", "deploy": "Deployment", "deployments": "Deployment",
	"statefulset": "StatefulSet", "sts": "StatefulSet", "statefulsets": "StatefulSet",
	"daemonset": "DaemonSet", "ds": "DaemonSet", "daemonsets": "DaemonSet",
	"replicaset": "ReplicaSet", "rs": "ReplicaSet", "replicasets": "ReplicaSet",
	"job": "Job", "jobs": "Job",
	"cronjob": "CronJob", "cj": "CronJob", "cronjobs": "CronJob",
}

// traceOptions are the flags of trace.
type traceOptions struct {
	genericiooptions.IOStreams
	source sourceOptions

	output   string
	from     string
	resolver string
	rtype    string
	policy   string

	run trace.Options
}

// newTrace returns the command trace.
func newTrace(config *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &traceOptions{
		IOStreams: streams, source: sourceOptions{config: config, IOStreams: streams}, output: "table", resolver: "all",
	}
	cmd := &cobra.Command{
		Use:   "trace NAME",
		Short: "Follow a host name from a pod to its address, query by query",
		Long: `Follow a host name from a pod to its address, query by query.

Shows resolv.conf as the pod has it, every query that glibc, musl and Go send because of it, which server block and
plugin answer, what each resolver makes of the answer, and the same once more after a fix, where one is known. Nothing is
asked of the cluster's DNS server: where it is CoreDNS and its Corefile is known, CoreDNS answers from within this
program, over what was read of the cluster; otherwise a model does, and the output says so.

Without --from the name is looked up for a pod of the namespace without DNS settings of its own. In the table ↓ stands
for going on to the next name, take for an address that is used, stop for the end of the search, leave for leaving the
search list.

Exits with 0 when the name resolves with every resolver, or hangs on an answer from outside that is not known; 1 when it
does not resolve with at least one; 2 when it could not be traced.`,
		Example: `  # A name as the pods of a Deployment look it up
  kubectl dnsmesh trace ledger --from deploy/api -n payments

  # With musl (Alpine) alone, from what was saved of a cluster
  kubectl dnsmesh trace api.shop --resolver musl -f cluster.json.gz

  # A service record, as a pod of namespace shop would ask for it
  kubectl dnsmesh trace _http._tcp.api --type SRV -n shop`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(cmd, args[0]); err != nil {
				return err
			}
			return o.trace(cmd.Context())
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	o.source.addFlags(cmd)
	for _, flag := range []string{"contexts", "all-namespaces"} {
		cobra.CheckErr(cmd.Flags().MarkHidden(flag))
	}
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", o.output, "Output format: "+strings.Join(traceFormats, ", "))
	f.StringVar(&o.from, "from", "", "Workload that looks the name up, such as deploy/api or pod/api-0")
	f.StringVar(&o.resolver, "resolver", o.resolver, "Resolver of its image: glibc, musl, go or all")
	f.StringVar(&o.rtype, "type", "", "Type of record, such as SRV (default A and AAAA, as programs ask for addresses)")
	f.StringVar(&o.policy, "dns-policy", "", "Take the dnsPolicy to be this one: "+strings.Join(policyWords, ", "))
	complete := func(flag string, words []string) {
		cobra.CheckErr(cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)))
	}
	complete("output", traceFormats)
	complete("resolver", resolverWords)
	complete("type", typeWords)
	complete("dns-policy", policyWords)
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("from", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return podWords(cmd.Context(), config), cobra.ShellCompDirectiveNoFileComp
	}))
	return cmd
}

// complete turns flags into options.
func (o *traceOptions) complete(cmd *cobra.Command, name string) error {
	if err := oneOf("output", o.output, traceFormats); err != nil {
		return err
	}
	if err := oneOf("resolver", o.resolver, resolverWords); err != nil {
		return err
	}
	for _, r := range resolve.Measured() {
		if o.resolver == "all" || o.resolver == strings.ToLower(r.Library.String()) {
			o.run.Resolvers = append(o.run.Resolvers, r.Library)
		}
	}
	if o.policy != "" {
		i := slices.IndexFunc(policyWords, func(w string) bool { return strings.EqualFold(w, o.policy) })
		if i < 0 {
			return oneOf("dns-policy", o.policy, policyWords)
		}
		o.run.Policy = resolve.Policy(policyWords[i])
	}
	if o.rtype != "" {
		t, ok := dns.StringToType[strings.ToUpper(o.rtype)]
		if !ok || t == dns.TypeNone || t == dns.TypeAXFR || t == dns.TypeIXFR || t == dns.TypeOPT || t == dns.TypeANY {
			return withHint(fmt.Errorf("--type %q is no type of record", o.rtype), "such as %s", strings.Join(typeWords, ", "))
		}
		o.run.Type = t
	}
	if o.from != "" {
		kind, object, ok := strings.Cut(o.from, "/")
		kind, _, _ = strings.Cut(kind, ".") // deployments.apps
		o.run.From = finding.Object{Kind: clientKinds[strings.ToLower(kind)], Name: object}
		if !ok || object == "" || strings.Contains(object, "/") || o.run.From.Kind == "" {
			return withHint(fmt.Errorf("--from %q is no workload", o.from), "such as deploy/api, sts/db or pod/api-0")
		}
	}
	if err := o.source.complete(cmd); err != nil {
		return err
	}
	o.run.Name = name
	o.run.Namespace = o.source.only
	if len(o.source.files) == 0 {
		if ns, _, err := o.source.config.ToRawKubeConfigLoader().Namespace(); err == nil {
			o.run.DefaultNamespace = ns
		}
	}
	return nil
}

// trace reads the source, follows the name and prints how it goes.
func (o *traceOptions) trace(ctx context.Context) error {
	snapshots, err := o.source.load(ctx)
	if err != nil {
		return err
	}
	if len(snapshots) != 1 {
		return errors.New("a trace is of one cluster")
	}
	o.run.Snapshot = snapshots[0]
	t, err := trace.Run(ctx, o.run)
	if err != nil {
		return fmt.Errorf("tracing: %w", err)
	}
	if err := printTrace(o.Out, t, o.output); err != nil {
		return fmt.Errorf("writing the trace: %w", err)
	}
	if t.Failed() {
		return errFindings
	}
	return nil
}

// podWords are the pods of the namespace as --from takes them. It asks the cluster for at most as long as somebody waits
// for a completion.
func podWords(ctx context.Context, config *genericclioptions.ConfigFlags) []string {
	rest, err := config.ToRESTConfig()
	if err != nil {
		return nil
	}
	namespace, _, err := config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil
	}
	client, err := corev1.NewForConfig(rest)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	list, err := client.Pods(namespace).List(ctx, metav1.ListOptions{Limit: 500})
	if err != nil {
		return nil
	}
	words := make([]string, len(list.Items))
	for i := range list.Items {
		words[i] = "pod/" + list.Items[i].Name
	}
	return words
}
