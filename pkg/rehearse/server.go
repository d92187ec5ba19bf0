package rehearse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/netip"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/forward"
	"github.com/coredns/coredns/plugin/kubernetes"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/resolve"
)

// process is what CoreDNS and caddy keep once for a whole process, and what this package therefore has to: the list of
// directives, the table of plugins, and the standard logger. It is the only state of the package.
type process struct {
	// start is held while a server is made: dnsserver.Directives belongs to whoever holds it.
	start chan struct{}

	register sync.Once

	mu sync.Mutex
	// quiet counts who wants the standard logger to be silent; writer is what it had before.
	quiet  int
	writer io.Writer
}

var theProcess = &process{start: make(chan struct{}, 1)}

// lock takes the right to start a server.
func (p *process) lock(ctx context.Context) error {
	select {
	case p.start <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *process) unlock() { <-p.start }

// silence sends the standard logger, where CoreDNS writes, nowhere until the last who asked for that says speak.
func (p *process) silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.quiet++; p.quiet == 1 {
		p.writer = log.Writer()
		log.SetOutput(io.Discard)
	}
}

func (p *process) speak() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.quiet--; p.quiet == 0 {
		log.SetOutput(p.writer)
		p.writer = nil
	}
}

// registerActions adds ours to the plugins that caddy knows: under no server type, where they are found for an instance
// that caddy has not started (plugins.go, DirectiveAction).
func (p *process) registerActions() {
	p.register.Do(func() {
		add := func(name string, action func(*server, *caddy.Controller) error) {
			caddy.RegisterPlugin(name, caddy.Plugin{Action: func(c *caddy.Controller) error {
				s, ok := c.Get(serverKey{}).(*server)
				if !ok {
					return fmt.Errorf("%s is a part of a rehearsal", name)
				}
				return s.setup(name, c, action)
			}})
		}
		add(markDirective, (*server).mark)
		for name, t := range treatments() {
			add(throughPrefix+name, (*server).through)
			add(unknownPrefix+name, (*server).unknown)
			if !t.run {
				continue
			}
			switch name {
			case "bind":
				add(name, (*server).bind)
			case "cache":
				add(name, (*server).cache)
			case "kubernetes":
				add(name, (*server).kubernetes)
			default:
				action, err := caddy.DirectiveAction(serverType, name)
				if err != nil {
					action = func(*caddy.Controller) error { return err }
				}
				add(name, func(_ *server, c *caddy.Controller) error { return action(c) })
			}
		}
	})
}

// serverType is the type under which CoreDNS registers plugins.
const serverType = "dns"

type serverKey struct{}

// server is CoreDNS with one Corefile.
type server struct {
	plan     *plan
	instance *caddy.Instance
	context  caddy.Context
	configs  []*dnsserver.Config
	// listeners are the servers that CoreDNS made, none of which listens.
	listeners []listener
	forwards  []*forward.Forward
	// owners are the directives that the hooks in instance.OnStartup come from.
	owners []owner
	// failed is the directive at which the setup ended.
	failed owner
}

// owner is a directive, for messages.
type owner struct {
	block  *planned
	plugin string
}

// listener is one address that the server would listen on.
type listener struct {
	address   netip.Addr // invalid for all
	port      string
	transport string
	server    *dnsserver.Server
}

// load makes the servers of a plan. Theirs is the process until it returns.
func (s *server) load(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &Unsupported{Reason: fmt.Sprintf("CoreDNS panics when it loads the Corefile: %v", r)}
		}
	}()
	before := dnsserver.Directives
	if err := dnsserver.SetDirectives(s.plan.directives()); err != nil {
		return fmt.Errorf("setting the order of plugins: %w", err)
	}
	defer func() { dnsserver.Directives = before }()

	s.instance = &caddy.Instance{Storage: map[interface{}]interface{}{serverKey{}: s}}
	input := caddy.CaddyfileInput{Filepath: printedName, Contents: []byte(s.plan.printer.b.String()), ServerTypeName: serverType}
	if err := caddy.ValidateAndExecuteDirectives(input, s.instance, false); err != nil {
		return s.plan.refusalOf(s.failed.block, s.failed.plugin, err)
	}
	s.trace()
	made, err := s.context.MakeServers()
	if err != nil {
		return s.plan.overlap(err)
	}
	for _, m := range made {
		l, err := newListener(m)
		if err != nil {
			return err
		}
		s.listeners = append(s.listeners, l)
	}
	slices.SortFunc(s.listeners, func(a, b listener) int {
		if a.port != b.port {
			return strings.Compare(a.port, b.port)
		}
		return a.address.Compare(b.address)
	})
	for i, hook := range s.instance.OnStartup {
		if ctx.Err() != nil {
			return fmt.Errorf("starting CoreDNS: %w", context.Cause(ctx))
		}
		if err := hook(); err != nil {
			return s.plan.refusalOf(s.owners[i].block, s.owners[i].plugin, err)
		}
	}
	return nil
}

// newListener finds the server in what CoreDNS made for a transport.
func newListener(made caddy.Server) (listener, error) {
	var l listener
	switch m := made.(type) {
	case *dnsserver.Server:
		l.server = m
	case *dnsserver.ServerTLS:
		l.server = m.Server
	case *dnsserver.ServerQUIC:
		l.server = m.Server
	case *dnsserver.ServergRPC:
		l.server = m.Server
	case *dnsserver.ServerHTTPS:
		l.server = m.Server
	case *dnsserver.ServerHTTPS3:
		l.server = m.Server
	default:
		return l, &Unsupported{Reason: fmt.Sprintf("the judge does not know the server %T", made)}
	}
	transport, rest, _ := strings.Cut(l.server.Addr, "://")
	host, port, err := net.SplitHostPort(rest)
	if err != nil {
		return l, &Unsupported{Reason: fmt.Sprintf("the judge does not know the address %q", l.server.Addr)}
	}
	l.transport, l.port = transport, port
	l.address, _ = netip.ParseAddr(host) // empty for all addresses
	return l, nil
}

// setup runs the action of a directive and puts tracers between the handlers that it adds.
func (s *server) setup(name string, c *caddy.Controller, action func(*server, *caddy.Controller) error) error {
	block := s.plan.blocks[c.ServerBlockIndex]
	config := dnsserver.GetConfig(c)
	had := len(config.Plugin)
	o := owner{block, strings.TrimPrefix(strings.TrimPrefix(name, throughPrefix), unknownPrefix)}
	if err := action(s, c); err != nil {
		s.failed = o
		return err
	}
	for len(s.owners) < len(s.instance.OnStartup) {
		s.owners = append(s.owners, o)
	}
	for i := had; i < len(config.Plugin); i++ {
		original := config.Plugin[i]
		config.Plugin[i] = func(next plugin.Handler) plugin.Handler {
			if next != nil {
				next = tracer{block: &block.Block, next: next}
			}
			handler := original(next)
			// A block with several keys has its handlers made for each of them, from the same plugins.
			if f, ok := handler.(*forward.Forward); ok && !slices.Contains(s.forwards, f) {
				s.forwards = append(s.forwards, f)
			}
			return handler
		}
	}
	return nil
}

// mark notes the configuration of a block.
func (s *server) mark(c *caddy.Controller) error {
	s.context = c.Context()
	s.configs = append(s.configs, dnsserver.GetConfig(c))
	return nil
}

// trace puts a tracer in front of every block that has a plugin. One without any stays so: CoreDNS refuses its queries.
func (s *server) trace() {
	for i, config := range s.configs {
		if len(config.Plugin) == 0 {
			continue
		}
		block := s.plan.blocks[i]
		config.Plugin = slices.Insert(config.Plugin, 0, func(next plugin.Handler) plugin.Handler {
			return entry{tracer{block: &block.Block, next: next, entry: true, doubt: strings.Join(block.doubts, "; ")}}
		})
	}
}

func (s *server) through(c *caddy.Controller) error {
	for c.Next() {
		name := strings.TrimPrefix(c.Val(), throughPrefix)
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler { return through{name, next} })
	}
	return nil
}

func (s *server) unknown(c *caddy.Controller) error {
	for c.Next() {
		if !c.NextArg() {
			return c.ArgErr()
		}
		n, err := strconv.Atoi(c.Val())
		if err != nil || n < 0 || n >= len(s.plan.unknowns) {
			return c.Errf("unknown stand-in '%s'", c.Val())
		}
		u := s.plan.unknowns[n]
		zones := plugin.OriginsFromArgsOrServerBlock(slices.Clone(u.zones), c.ServerBlockKeys)
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
			return unknownHandler{name: u.plugin, why: u.why, zones: zones, next: next}
		})
	}
	return nil
}

// bind takes the addresses as they are: nobody listens on them.
func (s *server) bind(c *caddy.Controller) error {
	var all []string
	for c.Next() {
		addresses := c.RemainingArgs()
		var except []string
		for c.NextBlock() {
			except = append(except, c.RemainingArgs()...)
		}
		for _, a := range addresses {
			if !slices.Contains(except, a) {
				all = append(all, a)
			}
		}
	}
	dnsserver.GetConfig(c).ListenHosts = all
	return nil
}

// cache reads its arguments; unless answers are to be kept, it then only hands queries on.
func (s *server) cache(c *caddy.Controller) error {
	action, err := caddy.DirectiveAction(serverType, "cache")
	if err != nil {
		return err
	}
	config := dnsserver.GetConfig(c)
	plugins, startup := len(config.Plugin), len(s.instance.OnStartup)
	if err := action(c); err != nil || s.plan.config.Cache {
		return err
	}
	s.instance.OnStartup = s.instance.OnStartup[:startup]
	config.Plugin = append(config.Plugin[:plugins], func(next plugin.Handler) plugin.Handler { return through{"cache", next} })
	return nil
}

// kubernetes does what setup of plugin/kubernetes does, with these differences: the objects come from the snapshot and
// not from a watch; klog is left alone, whose logger the plugin sets without regard to goroutines of client-go that run;
// and the addresses of the machine are not looked up.
func (s *server) kubernetes(c *caddy.Controller) error {
	var k *kubernetes.Kubernetes
	for c.Next() {
		if k != nil {
			return plugin.Error("kubernetes", plugin.ErrOnce)
		}
		var err error
		if k, err = kubernetes.ParseStanza(c); err != nil {
			return plugin.Error("kubernetes", err)
		}
	}
	// InitKubeCache takes over options into the plugin, and makes a client, which nobody uses: what it returns to start
	// the client is dropped. So what the Corefile says of the way to an API server (endpoint, tls, kubeconfig) does
	// not count, and no file that it names is read.
	k.ClientConfig = nil
	k.APIServerList = []string{"http://snapshot.invalid"}
	k.APICertAuth, k.APIClientCert, k.APIClientKey = "", "", ""
	if _, _, err := k.InitKubeCache(context.Background()); err != nil {
		return plugin.Error("kubernetes", err)
	}
	options, err := readOptions(named(s.plan.blocks[c.ServerBlockIndex].lines, "kubernetes")[0])
	if err != nil {
		return plugin.Error("kubernetes", err)
	}
	o := newObjects(s.plan.config.Snapshot, s.plan.config.Index, options)
	k.APIConn = o
	search := searchOf(s.plan.files.node)
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
		k.Next = next
		return &snapshotKubernetes{Kubernetes: k, objects: o, search: search}
	})
	return nil
}

// snapshotKubernetes is the kubernetes plugin, and what is left to say about a snapshot that does not hold everything.
type snapshotKubernetes struct {
	*kubernetes.Kubernetes

	objects *objects
	search  []string
}

// AutoPath is the search path that the plugin autopath follows. The plugin ends it with the search list of the machine
// it runs on, which here is that of the node.
func (k *snapshotKubernetes) AutoPath(state request.Request) []string {
	list := k.Kubernetes.AutoPath(state)
	const own = 3 // NAMESPACE.svc.ZONE, svc.ZONE and ZONE (plugin/kubernetes/autopath.go)
	if len(list) < own {
		return nil
	}
	return slices.Concat(list[:own], k.search, []string{""})
}

// ServeDNS implements plugin.Handler.
func (k *snapshotKubernetes) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if trace := walkOf(ctx); trace != nil {
		if why := k.uncertain(r.Question[0]); why != "" {
			trace.doubt(why)
		}
	}
	return k.Kubernetes.ServeDNS(ctx, w, r)
}

// uncertain says why the snapshot cannot tell what the plugin answers to a question; empty where it can.
func (k *snapshotKubernetes) uncertain(q dns.Question) string {
	name, err := resolve.Absolute(q.Name)
	if err != nil {
		return ""
	}
	zone := plugin.Zones(k.Zones).Matches(name)
	switch {
	case zone == "":
		return ""
	case name == "ns.dns."+zone, name == zone && q.Qtype == dns.TypeNS:
		return "the address of the server itself is not known"
	}
	return k.objects.uncertain(name, zone)
}

// stop ends everything that load has started, as far as it got.
func (s *server) stop() error {
	if s.instance == nil {
		return nil
	}
	err := errors.Join(s.instance.ShutdownCallbacks()...)
	for _, f := range s.forwards {
		for _, p := range f.List() {
			// The connections are otherwise closed by the finalizer, whenever that runs (plugin/pkg/proxy/proxy.go).
			runtime.SetFinalizer(p, nil)
			p.GetTransport().Stop()
		}
	}
	s.forwards = nil
	return err
}

// find returns the listener that a query is sent to.
func (s *server) find(to netip.AddrPort) (listener, bool) {
	port := to.Port()
	if port == 0 {
		port = 53
	}
	var found *listener
	for i := range s.listeners {
		l := &s.listeners[i]
		if l.port != strconv.Itoa(int(port)) {
			continue
		}
		switch {
		case to.Addr().IsValid() && l.address == to.Addr():
			return *l, true
		case !l.address.IsValid() || l.address.IsUnspecified():
			found = l
		case found == nil && !to.Addr().IsValid():
			found = l
		}
	}
	if found == nil {
		return listener{}, false
	}
	return *found, true
}

// ask puts one query to the server.
func (l *listener) ask(ctx context.Context, c *client, m *dns.Msg) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("asking CoreDNS: panic: %v\n%s", r, debug.Stack())
		}
	}()
	ctx = context.WithValue(ctx, dnsserver.Key{}, l.server)
	ctx = context.WithValue(ctx, dnsserver.LoopKey{}, 0)
	ctx = context.WithValue(ctx, walkKey{}, c.walk)
	l.server.ServeDNS(ctx, c, m)
	return nil
}
