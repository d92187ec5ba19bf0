package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster/load"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// live reads the cluster of a context; an empty name stands for the current one.
func (o *sourceOptions) live(ctx context.Context, name string, p *progress) (*load.Result, error) {
	flags := o.config
	if name != "" {
		// A context brings its own cluster and user; what flags say about the connection holds for each.
		flags = genericclioptions.NewConfigFlags(false)
		flags.KubeConfig, flags.Context, flags.CacheDir = o.config.KubeConfig, &name, o.config.CacheDir
		flags.Impersonate, flags.ImpersonateUID = o.config.Impersonate, o.config.ImpersonateUID
		flags.ImpersonateGroup, flags.Timeout = o.config.ImpersonateGroup, o.config.Timeout
	}
	config, err := flags.ToRESTConfig()
	if err == nil && noCluster(flags) {
		err = clientcmd.ErrEmptyConfig
	}
	if err != nil {
		return nil, configHint(err)
	}
	shown := name
	namespace := ""
	if raw, err := flags.ToRawKubeConfigLoader().RawConfig(); err == nil && shown == "" {
		shown = raw.CurrentContext
		if c := *flags.Context; c != "" {
			shown = c
		}
	}
	if ns, set, err := flags.ToRawKubeConfigLoader().Namespace(); err == nil && set {
		namespace = ns
	}
	r, err := load.Live(ctx, config, load.Options{Name: shown, Namespace: namespace, Progress: p.report(name)})
	if err != nil {
		if name != "" {
			err = fmt.Errorf("context %s: %w", name, err)
		}
		return nil, liveHint(err)
	}
	return r, nil
}

// noCluster tells whether nothing names a cluster. cli-runtime then takes one on localhost:8080, where none has been
// since Kubernetes 1.20.
func noCluster(flags *genericclioptions.ConfigFlags) bool {
	raw, err := flags.ToRawKubeConfigLoader().RawConfig()
	return err == nil && len(raw.Clusters) == 0 && (flags.APIServer == nil || *flags.APIServer == "") && os.Getenv("KUBERNETES_MASTER") == "" &&
		os.Getenv("KUBERNETES_SERVICE_HOST") == ""
}

// configHint says what to do where there is no usable kubeconfig.
func configHint(err error) error {
	if clientcmd.IsEmptyConfig(err) {
		return withHint(errors.New("there is no kubeconfig: no cluster to read"),
			"set KUBECONFIG or --kubeconfig, or read files with -f")
	}
	return withHint(fmt.Errorf("reading the kubeconfig: %w", err), "kubectl config get-contexts lists what there is")
}

// liveHint says what to do where a cluster cannot be read.
func liveHint(err error) error {
	switch {
	case errors.Is(err, load.ErrUnauthorized):
		return withHint(err, "log in again; kubectl auth whoami tells whether it worked")
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case apierrors.IsTimeout(err), errors.Is(err, context.DeadlineExceeded):
		return withHint(err, "give it more time with --request-timeout")
	}
	return withHint(err, "kubectl cluster-info tells whether the API server answers")
}

// fileHint says what to do where files cannot be read.
func fileHint(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case errors.Is(err, load.ErrForeign):
		return withHint(err, "print objects with kubectl get -o yaml or -o json")
	case errors.Is(err, load.ErrNothing):
		return withHint(err, "doctor reads what kubectl get -o yaml prints, a snapshot, a Corefile, or a folder of these")
	case errors.Is(err, load.ErrLimit):
		return withHint(err, "split the input, or make a snapshot of the cluster: %s snapshot", commandName)
	}
	return err
}

// texts reads the files that flags name.
func (o *sourceOptions) texts() ([]*cluster.Text, error) {
	var texts []*cluster.Text
	for _, f := range []struct {
		path string
		kind cluster.TextKind
	}{
		{o.podResolvConf, cluster.TextPodResolvConf},
		{o.nodeResolvConf, cluster.TextNodeResolvConf},
	} {
		if f.path == "" {
			continue
		}
		file, err := os.Open(f.path)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", f.path, err)
		}
		data, err := io.ReadAll(io.LimitReader(file, maxConfig+1))
		file.Close()
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", f.path, err)
		}
		if len(data) > maxConfig {
			return nil, fmt.Errorf("reading %s: it has more than %d bytes", f.path, maxConfig)
		}
		texts = append(texts, &cluster.Text{Kind: f.kind, Name: f.path, Data: string(data)})
	}
	return texts, nil
}

func validVersion(s string) bool {
	_, ok := resolve.ParseVersion(s)
	return ok
}

// progress shows on a terminal how far reading is. It stays silent where nobody waits: no terminal, or done at once.
type progress struct {
	mu      sync.Mutex
	w       io.Writer
	started time.Time
	counts  map[string]int
	drawn   time.Time
	shown   bool
	active  bool
}

// The times after which progress is first shown, and shown anew.
const (
	progressAfter = 700 * time.Millisecond
	progressEvery = 100 * time.Millisecond
)

func newProgress(w io.Writer) *progress {
	_, ok := terminal(w)
	return &progress{w: w, active: ok && os.Getenv("TERM") != "dumb", started: time.Now(), counts: map[string]int{}}
}

// report returns the callback of package load for one source.
func (p *progress) report(source string) func(load.Progress) {
	if !p.active {
		return nil
	}
	return func(at load.Progress) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.counts[source+" "+string(at.Resource)] = at.Count
		now := time.Now()
		if !p.active || now.Sub(p.started) < progressAfter || now.Sub(p.drawn) < progressEvery {
			return
		}
		p.drawn, p.shown = now, true
		total := map[string]int{}
		for key, n := range p.counts {
			total[key[strings.LastIndexByte(key, ' ')+1:]] += n
		}
		var parts []string
		for _, r := range []string{"namespaces", "services", "endpointslices", "pods", "configmaps"} {
			if n := total[r]; n > 0 {
				parts = append(parts, plural(n, strings.TrimSuffix(r, "s"), r))
			}
		}
		fmt.Fprintf(p.w, "\r\x1b[Kreading: %s", strings.Join(parts, ", "))
	}
}

// end clears the line. It may be called more than once.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	p.active, p.shown = false, false
}
