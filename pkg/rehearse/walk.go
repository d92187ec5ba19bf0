package rehearse

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/coredns/coredns/plugin"
	"github.com/miekg/dns"
)

// walk follows one query through the plugins. Some plugins answer from goroutines of their own, so it is locked.
type walk struct {
	mu      sync.Mutex
	visits  []Visit
	stack   []int
	lookups int
	// writer is the visit that wrote the answer, -1 before.
	writer   int
	msg      *dns.Msg
	upstream []Exchange
	unknown  string
}

type walkKey struct{}

// walkOf returns the walk of a query; nil for one that a plugin asks for its own sake.
func walkOf(ctx context.Context) *walk {
	w, _ := ctx.Value(walkKey{}).(*walk)
	return w
}

func (w *walk) enter(v Visit, block bool) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if block {
		w.lookups++
	}
	v.Depth = max(w.lookups-1, 0)
	w.visits = append(w.visits, v)
	w.stack = append(w.stack, len(w.visits)-1)
	return len(w.visits) - 1
}

func (w *walk) leave(i, rcode int, err error, block bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.visits[i].Rcode, w.visits[i].Err = rcode, err
	if at := slices.Index(w.stack, i); at >= 0 {
		w.stack = w.stack[:at]
	}
	if block {
		w.lookups--
	}
}

// wrote keeps the answer, and the innermost plugin as the one that gave it.
func (w *walk) wrote(m *dns.Msg) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.msg != nil {
		return
	}
	w.msg = m.Copy()
	if n := len(w.stack); n > 0 {
		w.writer = w.stack[n-1]
	}
}

// doubt keeps the first reason why the answer is not certain.
func (w *walk) doubt(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unknown == "" {
		w.unknown = why
	}
}

func (w *walk) exchanged(e Exchange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.upstream = append(w.upstream, e)
	if e.Reply.Unknown != "" && w.unknown == "" {
		w.unknown = e.Reply.Unknown
	}
}

// answerer is the visit that decided: the one that wrote, or else the last plugin that the query of the client reached.
func (w *walk) answerer() (Visit, bool) {
	if w.writer >= 0 {
		return w.visits[w.writer], true
	}
	for _, v := range slices.Backward(w.visits) {
		if v.Depth == 0 {
			return v, true
		}
	}
	return Visit{}, false
}

// tracer stands in front of a plugin and notes what goes in and what comes out.
type tracer struct {
	block *Block
	next  plugin.Handler
	// entry tells that it is the first of a block.
	entry bool
	// doubt says why no answer of the block is certain; for entries.
	doubt string
}

// Name is that of the plugin behind.
func (t tracer) Name() string { return t.next.Name() }

// ServeDNS implements plugin.Handler.
func (t tracer) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	trace := walkOf(ctx)
	if trace == nil {
		return t.next.ServeDNS(ctx, w, r)
	}
	v := Visit{Block: t.block, Plugin: t.next.Name()}
	if len(r.Question) > 0 {
		v.Name, v.Type = r.Question[0].Name, r.Question[0].Qtype
	}
	if t.entry && t.doubt != "" {
		trace.doubt(t.doubt)
	}
	i := trace.enter(v, t.entry)
	rcode, err := t.next.ServeDNS(ctx, w, r)
	trace.leave(i, rcode, err, t.entry)
	return rcode, err
}

// entry is the first handler of a block: the tracer of the first plugin.
type entry struct{ tracer }

// Name is that of the directive that marks a block, so that the handler does not take the place of a plugin in the
// server's register.
func (entry) Name() string { return markDirective }

// through hands queries on.
type through struct {
	name string
	next plugin.Handler
}

// Name is that of the plugin in whose place it stands.
func (t through) Name() string { return t.name }

// ServeDNS implements plugin.Handler.
func (t through) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return plugin.NextOrFailure(t.name, t.next, ctx, w, r)
}

// unknownHandler stands for a plugin whose answers are not known.
type unknownHandler struct {
	name, why string
	zones     plugin.Zones
	next      plugin.Handler
}

// Name is that of the plugin in whose place it stands.
func (u unknownHandler) Name() string { return u.name }

// ServeDNS implements plugin.Handler.
func (u unknownHandler) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if u.zones.Matches(r.Question[0].Name) == "" {
		return plugin.NextOrFailure(u.name, u.next, ctx, w, r)
	}
	if trace := walkOf(ctx); trace != nil {
		trace.doubt(u.why)
	}
	m := new(dns.Msg)
	m.SetRcode(r, dns.RcodeNameError)
	return dns.RcodeNameError, w.WriteMsg(m)
}

// client is the side of a query that asks: a dns.ResponseWriter that keeps the message.
type client struct {
	walk          *walk
	remote, local net.Addr
}

func newClient(w *walk, from netip.Addr, to netip.AddrPort, tcp bool) *client {
	const port = 40000 // of the client; nothing depends on it
	c := &client{walk: w}
	if tcp {
		c.remote, c.local = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, port)), net.TCPAddrFromAddrPort(to)
	} else {
		c.remote, c.local = net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, port)), net.UDPAddrFromAddrPort(to)
	}
	return c
}

// LocalAddr is where the query was sent.
func (c *client) LocalAddr() net.Addr { return c.local }

// RemoteAddr is where it comes from.
func (c *client) RemoteAddr() net.Addr { return c.remote }

// WriteMsg takes the answer.
func (c *client) WriteMsg(m *dns.Msg) error {
	c.walk.wrote(m)
	return nil
}

// Write takes an answer on the wire.
func (c *client) Write(b []byte) (int, error) {
	m := new(dns.Msg)
	if err := m.Unpack(b); err != nil {
		return 0, err
	}
	return len(b), c.WriteMsg(m)
}

// Close does nothing.
func (c *client) Close() error { return nil }

// TsigStatus says that there is no signature to verify.
func (c *client) TsigStatus() error { return nil }

// TsigTimersOnly does nothing.
func (c *client) TsigTimersOnly(bool) {}

// Hijack does nothing.
func (c *client) Hijack() {}
