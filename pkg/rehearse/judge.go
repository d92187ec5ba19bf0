package rehearse

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/miekg/dns"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// Config is what a judge is made of. Only Corefile is needed.
type Config struct {
	// Corefile is the Corefile with its files and its environment. It is not changed.
	Corefile *cluster.Corefile
	// Snapshot holds the objects that the kubernetes plugin reads, and Index is its index; both may be nil.
	Snapshot *cluster.Snapshot
	Index    *cluster.Index
	// Version is the release of CoreDNS that the user runs: the order of plugins, and the plugins there are. An unknown
	// version is taken for the newest.
	Version resolve.Version
	// Upstream says what an upstream answers. If nil, nothing is known of any. It is called from several goroutines.
	Upstream func(Exchange) Reply
	// Cache tells that the server keeps answers from one question to the next, as a real one does. Otherwise each
	// question finds an empty cache, so that its answer does not depend on the questions before.
	Cache bool
}

// Judge is a CoreDNS that serves a Corefile over a snapshot. Several goroutines may use it; it takes one question after
// the other. It has to be stopped.
type Judge struct {
	plan   *plan
	server *server
	stubs  *stubs

	// turn is held by who asks or stops.
	turn chan struct{}
	stop sync.Once
	end  error
	done bool // under turn
}

// Start loads a Corefile. It returns *Refusal if CoreDNS does not load it, and *Unsupported if the judge does not run it.
// While one judge starts, others wait; once it has started, any number may be asked side by side. It takes at most 30
// seconds, or until ctx ends.
func Start(ctx context.Context, config Config) (*Judge, error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	if config.Corefile == nil {
		cancel()
		return nil, &Unsupported{Reason: "there is no Corefile"}
	}
	if config.Snapshot == nil {
		config.Snapshot, config.Index = &cluster.Snapshot{}, nil
	}
	if config.Index == nil {
		config.Index = cluster.NewIndex(config.Snapshot)
	}
	if config.Upstream == nil {
		config.Upstream = unknownReply
	}
	if err := theProcess.lock(ctx); err != nil {
		cancel()
		return nil, fmt.Errorf("waiting for another rehearsal to start: %w", err)
	}
	type result struct {
		judge *Judge
		err   error
	}
	results := make(chan result, 1)
	go func() {
		defer theProcess.unlock()
		j, err := start(ctx, &config)
		results <- result{j, err}
	}()
	select {
	case r := <-results:
		cancel()
		return r.judge, r.err
	case <-ctx.Done():
		// Nothing stops code that does not look at the context. When it is through, what it has made is taken down.
		go func() {
			defer cancel()
			if r := <-results; r.judge != nil {
				_ = r.judge.Stop(context.Background()) // nobody is left to tell
			}
		}()
		return nil, fmt.Errorf("starting CoreDNS: %w", context.Cause(ctx))
	}
}

// start makes a judge. The process is its own.
func start(ctx context.Context, config *Config) (*Judge, error) {
	theProcess.silence()
	theProcess.registerActions()
	s := &stubs{reply: config.Upstream}
	j := &Judge{stubs: s, turn: make(chan struct{}, 1)}
	var err error
	j.plan, err = newPlan(config, s)
	if err == nil {
		j.server = &server{plan: j.plan}
		err = j.server.load(ctx)
	}
	if err != nil {
		if closing := j.close(); closing != nil {
			err = errors.Join(err, closing)
		}
		return nil, err
	}
	return j, nil
}

// Stop ends the judge and removes its files. It may be called more than once; questions that come later are answered
// with ErrStopped.
func (j *Judge) Stop(ctx context.Context) error {
	select {
	case j.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("waiting for the last question: %w", context.Cause(ctx))
	}
	defer func() { <-j.turn }()
	j.done = true
	j.stop.Do(func() { j.end = j.close() })
	return j.end
}

func (j *Judge) close() error {
	defer theProcess.speak()
	var errs []error
	if j.server != nil {
		errs = append(errs, j.server.stop())
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	errs = append(errs, j.stubs.stop(ctx))
	if j.plan != nil {
		errs = append(errs, j.plan.files.close())
	}
	return errors.Join(errs...)
}

// Notices are the places of the Corefile that the judge does not run as they are, in order.
func (j *Judge) Notices() []Notice { return slices.Clone(j.plan.notices) }

// Blocks are the server blocks, in order.
func (j *Judge) Blocks() []Block {
	list := make([]Block, len(j.plan.blocks))
	for i, b := range j.plan.blocks {
		list[i] = b.Block
	}
	return list
}

// ErrNoListener says that no server block listens where a question is sent.
var ErrNoListener = errors.New("no server block listens there")

// Ask puts a question to the server. It takes at most ten seconds, or until ctx ends.
func (j *Judge) Ask(ctx context.Context, q Question) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if _, ok := dns.IsDomainName(q.Name); !ok {
		return Answer{}, fmt.Errorf("asking for %s: not a domain name", quoted(q.Name))
	}
	select {
	case j.turn <- struct{}{}:
	case <-ctx.Done():
		return Answer{}, fmt.Errorf("waiting for another question: %w", context.Cause(ctx))
	}
	if j.done {
		<-j.turn
		return Answer{}, ErrStopped
	}
	l, ok := j.server.find(q.Server)
	if !ok {
		<-j.turn
		return Answer{}, ErrNoListener
	}

	m := new(dns.Msg)
	m.SetQuestion(dns.Fqdn(q.Name), cmpType(q.Type))
	if q.UDPSize > 0 {
		m.SetEdns0(q.UDPSize, false)
	}
	from := q.Client
	if !from.IsValid() {
		from = noClient
	}
	to := q.Server
	if !to.Addr().IsValid() {
		to = netip.AddrPortFrom(noServer, max(to.Port(), 1))
	}
	w := &walk{writer: -1}
	failed := make(chan error, 1)
	go func() {
		defer func() { <-j.turn }()
		j.stubs.recording(w.exchanged)
		defer j.stubs.recording(nil)
		failed <- l.ask(ctx, newClient(w, from, to, q.TCP), m)
	}()
	select {
	case err := <-failed:
		if err != nil {
			return Answer{}, err
		}
		return w.answer(), nil
	case <-ctx.Done():
		return Answer{}, fmt.Errorf("asking CoreDNS for %s: %w", quoted(q.Name), context.Cause(ctx))
	}
}

// Addresses of a client and a server of which nothing is known (RFC 5737).
var (
	noClient = netip.AddrFrom4([4]byte{192, 0, 2, 1})
	noServer = netip.AddrFrom4([4]byte{192, 0, 2, 53})
)

func cmpType(t uint16) uint16 {
	if t == dns.TypeNone {
		return dns.TypeA
	}
	return t
}

// answer is what the walk has come to.
func (w *walk) answer() Answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := Answer{Rcode: dns.RcodeServerFailure, Path: w.visits, Upstream: w.upstream, Unknown: w.unknown}
	if v, ok := w.answerer(); ok {
		a.Block, a.Plugin = v.Block, v.Plugin
	}
	if len(w.visits) > 0 {
		a.Block = w.visits[0].Block
	}
	if w.msg == nil {
		return a
	}
	a.Rcode, a.Authoritative, a.Truncated = w.msg.Rcode, w.msg.Authoritative, w.msg.Truncated
	a.Answer, a.Authority = w.msg.Answer, w.msg.Ns
	for _, rr := range w.msg.Extra {
		if rr.Header().Rrtype != dns.TypeOPT {
			a.Additional = append(a.Additional, rr)
		}
	}
	return a
}
