package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster/load"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose/checks"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// doctorOptions are the flags of doctor.
type doctorOptions struct {
	genericiooptions.IOStreams
	source sourceOptions

	output     string
	failOn     string
	checks     []string
	skip       []string
	severities []string
	suppress   []string
	configPath string
	listChecks bool
	verbose    bool

	// What complete makes of them.
	run    diagnose.Options
	failAt finding.Severity
}

// failWords are the values of --fail-on.
var failWords = []string{"error", "warning", "info", "never"}

// newDoctor returns the command doctor.
func newDoctor(config *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &doctorOptions{IOStreams: streams, source: sourceOptions{config: config, IOStreams: streams}, output: "table"}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Judge which names go wrong, for whom, and how to mend it",
		Long: `Judge which names go wrong, for whom, and how to mend it.

Reads namespaces, Services, EndpointSlices, pods, nodes and ConfigMaps, of the current context or from files, and never
a Secret. Every host name that a workload uses is resolved as its pods would resolve it, with glibc, musl and Go. The
whole cluster is judged; -n keeps the findings about one namespace.

Files may be what kubectl get -o yaml or -o json prints, manifests, a snapshot, the output of kubectl cluster-info dump,
a Corefile, or a resolv.conf, compressed or not, alone or in folders.

Exits with 0 when nothing at or above --fail-on was found, 1 when something was, and 2 when nothing could be judged. A
finding is suppressed by --suppress, by a configuration file, or by the annotation dnsmesh.io/ignore of its object or
namespace.`,
		Example: `  # Judge the cluster of the current context
  kubectl dnsmesh doctor

  # Judge files: what kubectl printed, manifests, a Corefile, a snapshot
  kubectl get ns,svc,endpointslices,pods,cm,nodes -A -o yaml |
    kubectl dnsmesh doctor -f -
  kubectl dnsmesh doctor -f Corefile --coredns-version 1.11.3

  # In a pipeline: fail on warnings, results for a code scanning service
  kubectl dnsmesh doctor -f manifests/ --fail-on warning -o sarif > out.sarif

  # Two clusters side by side
  kubectl dnsmesh doctor --contexts east,west`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.listChecks {
				return printChecks(o.Out, checks.All())
			}
			if err := o.complete(cmd); err != nil {
				return err
			}
			return o.doctor(cmd.Context())
		},
	}
	f := cmd.Flags()
	o.source.addFlags(cmd)
	f.StringVarP(&o.output, "output", "o", o.output, "Output format: "+strings.Join(reportFormats, ", "))
	f.StringVar(&o.failOn, "fail-on", "", "Exit with 1 from this severity on: error, warning, info or never (default error)")
	f.StringSliceVar(&o.checks, "checks", nil, "Run only these codes, prefixes of codes, or checks")
	f.StringSliceVar(&o.skip, "skip", nil, "Leave out these codes, prefixes of codes, or checks")
	f.StringSliceVar(&o.severities, "severity", nil, "Report a code with another severity: CODE=error|warning|info")
	f.StringSliceVar(&o.suppress, "suppress", nil, "Leave out findings: CODE, or CODE:NAMESPACE/NAME with * and ? as patterns")
	f.StringVar(&o.configPath, "config", "", "Configuration file (default "+configFile+" where it exists)")
	f.BoolVar(&o.listChecks, "list-checks", false, "List all codes and end")
	f.BoolVar(&o.verbose, "verbose", false, "Say which checks were skipped, and why")
	complete := func(flag string, words func() []string) {
		cobra.CheckErr(cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return words(), cobra.ShellCompDirectiveNoFileComp
		}))
	}
	complete("output", func() []string { return reportFormats })
	complete("fail-on", func() []string { return failWords })
	for _, flag := range []string{"checks", "skip", "suppress"} {
		cobra.CheckErr(cmd.RegisterFlagCompletionFunc(flag, completeList(codeCompletions)))
	}
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("severity", completeList(severityCompletions)))
	return cmd
}

// complete reads the configuration and turns flags into options.
func (o *doctorOptions) complete(cmd *cobra.Command) error {
	if err := oneOf("output", o.output, reportFormats); err != nil {
		return err
	}
	file, err := readConfig(o.configPath)
	if err != nil {
		return err
	}
	all := checks.All()
	if len(o.checks) == 0 {
		o.checks = file.Checks
	}
	expand := func(words []string) []string {
		codes, bad := diagnose.Expand(words, all)
		if bad != nil && err == nil {
			err = withHint(bad, "%s doctor --list-checks lists them", commandName)
		}
		return codes
	}
	o.run.Checks, o.run.Skip = expand(o.checks), expand(append(slices.Clone(file.Skip), o.skip...))
	if err != nil {
		return err
	}
	o.run.Severities = map[string]finding.Severity{}
	for id, s := range file.Severities {
		if checks.Find(id) == nil {
			return fmt.Errorf("the configuration gives a severity to %q, which is no code", id)
		}
		o.run.Severities[strings.ToUpper(id)] = s
	}
	for _, word := range o.severities {
		id, level, _ := strings.Cut(word, "=")
		s, err := finding.ParseSeverity(level)
		if err != nil || checks.Find(id) == nil {
			return withHint(fmt.Errorf("--severity %q is not CODE=error|warning|info", word), "such as --severity DM1009=warning")
		}
		o.run.Severities[strings.ToUpper(id)] = s
	}
	o.run.Suppress = slices.Clone(file.Suppress)
	for _, word := range o.suppress {
		code, object, _ := strings.Cut(word, ":")
		s := diagnose.Suppression{Code: strings.ToUpper(code), Object: object}
		if err := s.Validate(); err != nil {
			return fmt.Errorf("--suppress %q: %w", word, err)
		}
		if s.Code != "" {
			if _, err := diagnose.Expand([]string{s.Code}, all); err != nil {
				return withHint(fmt.Errorf("--suppress %q: %w", word, err), "such as --suppress DM1009:shop/*")
			}
		}
		o.run.Suppress = append(o.run.Suppress, s)
	}
	word := "error"
	if file.FailOn != "" {
		word = file.FailOn
	}
	if o.failOn != "" {
		word = o.failOn
	}
	if err := oneOf("fail-on", word, failWords); err != nil {
		return err
	}
	if word == "never" {
		o.failAt = finding.Error + 1
	} else if o.failAt, err = finding.ParseSeverity(word); err != nil {
		return err
	}
	if err := o.source.complete(cmd); err != nil {
		return err
	}
	o.run.Namespace = o.source.only
	return nil
}

// doctor judges every source and prints one report.
func (o *doctorOptions) doctor(ctx context.Context) error {
	sources, err := o.source.load(ctx)
	if err != nil {
		return err
	}
	reports := make([]*diagnose.Report, len(sources))
	names := make([]string, len(sources))
	for i, s := range sources {
		names[i] = s.Name
		reports[i] = diagnose.Run(s, checks.All(), o.run)
	}
	report := diagnose.Merge(reports, names)
	status := exitOK
	switch {
	case !report.Judged():
		status = exitError
	case report.Worst() >= o.failAt:
		status = exitFindings
	}
	err = printReport(o.Out, report, printOptions{
		format: o.output, verbose: o.verbose, codes: o.run.Reported(checks.Codes()), status: status, again: o.source.commandLine(),
	})
	switch {
	case err != nil:
		return fmt.Errorf("writing the report: %w", err)
	case status == exitError:
		return nothingJudged(report, len(o.source.files) > 0)
	case status == exitFindings:
		return errFindings
	}
	return nil
}

// nothingJudged is the error of a report without any check that ran.
func nothingJudged(r *diagnose.Report, files bool) error {
	var reasons []string
	for _, s := range r.Skipped {
		for reason := range strings.SplitSeq(s.Reason, "; ") {
			if !slices.Contains(reasons, reason) {
				reasons = append(reasons, reason)
			}
		}
	}
	// What is broken comes before what is not there.
	slices.SortStableFunc(reasons, func(a, b string) int {
		return strings.Count(a[:min(3, len(a))], "no ") - strings.Count(b[:min(3, len(b))], "no ")
	})
	switch {
	case len(reasons) == 0:
		return withHint(errors.New("nothing could be judged: the input holds nothing that the chosen checks look at"),
			"%s doctor --list-checks lists them", commandName)
	case files:
		return withHint(fmt.Errorf("nothing could be judged: %s", strings.Join(reasons, "; ")),
			"kubectl get ns,svc,endpointslices,pods,cm,nodes -A -o yaml prints what doctor reads")
	}
	return withHint(fmt.Errorf("nothing could be judged: %s", strings.Join(reasons, "; ")),
		"kubectl auth can-i list services -A tells whether you may read what doctor needs")
}

// sourceOptions are the flags that say what is read.
type sourceOptions struct {
	genericiooptions.IOStreams
	config *genericclioptions.ConfigFlags

	files          []string
	contexts       []string
	allNamespaces  bool
	corednsVersion string
	dnsServer      string
	clusterDomain  string
	podResolvConf  string
	nodeResolvConf string

	// only is the namespace whose findings are kept; empty for all.
	only string
}

func (o *sourceOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVarP(&o.files, "filename", "f", nil,
		"Read files or folders instead of a cluster; - is standard input")
	f.StringSliceVar(&o.contexts, "contexts", nil, "Read several contexts of the kubeconfig side by side")
	f.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Keep findings about all namespaces (the default without -n)")
	f.StringVar(&o.dnsServer, "dns", "", "Take the DNS server to be coredns or kube-dns, whatever the objects show")
	f.StringVar(&o.corednsVersion, "coredns-version", "", "Take CoreDNS to be of this version, such as 1.11.3")
	f.StringVar(&o.clusterDomain, "cluster-domain", "", "Take the cluster domain to be this one")
	f.StringVar(&o.podResolvConf, "resolv-conf", "", "File with /etc/resolv.conf as a pod of the cluster has it")
	f.StringVar(&o.nodeResolvConf, "node-resolv-conf", "", "File with the resolv.conf that pods inherit from their node")
	for _, flag := range []string{"resolv-conf", "node-resolv-conf", "filename"} {
		cobra.CheckErr(cmd.MarkFlagFilename(flag))
	}
	fixed := func(flag string, words func() []string) {
		cobra.CheckErr(cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return words(), cobra.ShellCompDirectiveNoFileComp
		}))
	}
	fixed("contexts", func() []string { return contextNames(o.config) })
	fixed("dns", func() []string { return []string{"coredns", "kube-dns"} })
}

func (o *sourceOptions) complete(cmd *cobra.Command) error {
	if cmd.Flags().Changed("filename") && !slices.ContainsFunc(o.files, func(f string) bool { return f != "" }) {
		// -f "$DIR" with an unset variable must not turn to the cluster instead.
		return withHint(errors.New("--filename is empty"), "see %s --help", cmd.CommandPath())
	}
	if len(o.files) > 0 && len(o.contexts) > 0 {
		return errors.New("--filename and --contexts exclude each other")
	}
	if len(o.contexts) > 0 && *o.config.Context != "" {
		return errors.New("--context and --contexts exclude each other")
	}
	switch o.dnsServer {
	case "", "coredns", "kube-dns":
	default:
		return oneOf("dns", o.dnsServer, []string{"coredns", "kube-dns"})
	}
	if o.corednsVersion != "" {
		if o.dnsServer == "kube-dns" {
			return errors.New("--coredns-version and --dns kube-dns exclude each other")
		}
		if !validVersion(o.corednsVersion) {
			return withHint(fmt.Errorf("--coredns-version %q is no version", o.corednsVersion), "such as 1.11.3")
		}
	}
	if cmd.Flags().Changed("namespace") && !o.allNamespaces {
		o.only = *o.config.Namespace
	}
	return nil
}

// load reads every source: the files as one, or each context, side by side.
func (o *sourceOptions) load(ctx context.Context) ([]*cluster.Snapshot, error) {
	progress := newProgress(o.ErrOut)
	defer progress.end()
	var results []*load.Result
	if len(o.files) > 0 {
		r, err := load.Files(ctx, o.files, o.In, load.Options{Namespace: *o.config.Namespace, Progress: progress.report("")})
		if err != nil {
			return nil, fileHint(err)
		}
		results = []*load.Result{r}
	} else {
		contexts := o.contexts
		if len(contexts) == 0 {
			contexts = []string{""}
		}
		results = make([]*load.Result, len(contexts))
		group, ctx := errgroup.WithContext(ctx)
		for i, name := range contexts {
			group.Go(func() (err error) {
				results[i], err = o.live(ctx, name, progress)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return nil, err
		}
	}
	progress.end()
	texts, err := o.texts()
	if err != nil {
		return nil, err
	}
	var snapshots []*cluster.Snapshot
	for _, r := range results {
		for _, n := range r.Notes {
			fmt.Fprintf(o.ErrOut, "note: %s\n", finding.Printable(n))
		}
		s := r.Snapshot
		s.Texts = append(s.Texts, texts...)
		s.Override = cluster.Override{
			Implementation: cluster.Implementation(o.dnsServer), Version: o.corednsVersion, Domain: o.clusterDomain,
		}
		if s.Override.Version != "" {
			s.Override.Implementation = cluster.CoreDNS
		}
		snapshots = append(snapshots, s)
	}
	if o.only != "" && !slices.ContainsFunc(snapshots, func(s *cluster.Snapshot) bool {
		return len(s.Namespaces) == 0 || slices.ContainsFunc(s.Namespaces, func(n *corev1.Namespace) bool { return n.Name == o.only })
	}) {
		fmt.Fprintf(o.ErrOut, "note: there is no namespace %s\n", finding.Printable(o.only))
	}
	return snapshots, nil
}

// commandLine is the command that reads the same source, for hints.
func (o *sourceOptions) commandLine() string {
	s := commandName + " doctor"
	for _, f := range o.files {
		s += " -f " + f
	}
	if len(o.contexts) > 0 {
		s += " --contexts " + strings.Join(o.contexts, ",")
	}
	if c := *o.config.Context; c != "" {
		s += " --context " + c
	}
	return s
}
