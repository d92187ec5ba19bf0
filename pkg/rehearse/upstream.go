package rehearse

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"

	"github.com/miekg/dns"
)

// stubs are the servers that stand in for upstreams. Each has a UDP and a TCP socket of one port on the loopback
// interface, since that is how the forward plugin asks.
type stubs struct {
	reply func(Exchange) Reply

	mu   sync.Mutex
	list []*stub
	// record gets every exchange; nil between questions.
	record func(Exchange)
}

// stub is one upstream.
type stub struct {
	owner   *stubs
	to, via string
	address string
	servers [2]*dns.Server
	done    sync.WaitGroup
}

// at returns the address of the stub for an upstream and starts it if there is none yet.
func (s *stubs) at(to, via string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.list {
		if u.to == to && u.via == via {
			return u.address, nil
		}
	}
	if len(s.list) == maxUpstreams {
		return "", fmt.Errorf("more than %d upstreams", maxUpstreams)
	}
	u := &stub{owner: s, to: to, via: via}
	if err := u.start(); err != nil {
		return "", fmt.Errorf("starting a stand-in for the upstream %s: %w", to, err)
	}
	s.list = append(s.list, u)
	return u.address, nil
}

// start listens on a port that is free for UDP and TCP.
func (u *stub) start() error {
	const tries = 16
	var err error
	for range tries {
		var packets net.PacketConn
		if packets, err = net.ListenPacket("udp4", "127.0.0.1:0"); err != nil {
			return err
		}
		var listener net.Listener
		if listener, err = net.Listen("tcp4", packets.LocalAddr().String()); err != nil {
			err = errors.Join(err, packets.Close())
			continue // another program has the port for TCP
		}
		u.address = packets.LocalAddr().String()
		u.servers = [2]*dns.Server{
			{PacketConn: packets, Handler: dns.HandlerFunc(u.serve)},
			{Listener: listener, Handler: dns.HandlerFunc(u.serve)},
		}
		for _, server := range u.servers {
			started := make(chan struct{})
			server.NotifyStartedFunc = func() { close(started) }
			u.done.Go(func() { _ = server.ActivateAndServe() }) // it ends with the error that stop causes
			<-started
		}
		return nil
	}
	return err
}

// serve answers one query.
func (u *stub) serve(w dns.ResponseWriter, r *dns.Msg) {
	m := new(dns.Msg)
	if len(r.Question) != 1 {
		m.SetRcode(r, dns.RcodeFormatError)
		_ = w.WriteMsg(m) // the asking side has gone
		return
	}
	q := r.Question[0]
	_, tcp := w.RemoteAddr().(*net.TCPAddr)
	e := Exchange{To: u.to, Via: u.via, Name: q.Name, Type: q.Qtype, TCP: tcp}
	if q.Name == "." && q.Qtype == dns.TypeNS {
		// The health check of forward, which no client has asked for.
		m.SetReply(r)
		_ = w.WriteMsg(m)
		return
	}
	e.Reply = u.owner.reply(e)
	u.owner.mu.Lock()
	if record := u.owner.record; record != nil {
		record(e)
	}
	u.owner.mu.Unlock()
	if e.Reply.Silent {
		return
	}
	m.SetRcode(r, e.Reply.Rcode)
	m.RecursionAvailable = true
	m.Answer, m.Ns = e.Reply.Records, e.Reply.Authority
	if opt := r.IsEdns0(); opt != nil {
		m.SetEdns0(dns.DefaultMsgSize, opt.Do())
	}
	if !tcp {
		size := dns.MinMsgSize
		if opt := r.IsEdns0(); opt != nil {
			size = max(size, int(opt.UDPSize()))
		}
		m.Truncate(size)
	}
	_ = w.WriteMsg(m)
}

// recording sets who gets the exchanges.
func (s *stubs) recording(record func(Exchange)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record = record
}

// restore puts the upstreams of the user back into a message.
func (s *stubs) restore(msg string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.list {
		// An upstream with a transport that forward does not know keeps that in front.
		if transport, _, found := strings.Cut(u.to, "://"); found {
			_, path, _ := strings.Cut(strings.TrimPrefix(u.to, transport+"://"), "/")
			msg = strings.ReplaceAll(msg, strings.TrimSuffix(transport+"://"+u.address+"/"+path, "/"), u.to)
		}
		msg = strings.ReplaceAll(msg, u.address, u.to)
	}
	return msg
}

// stop ends all stubs and waits for them.
func (s *stubs) stop(ctx context.Context) error {
	s.mu.Lock()
	list := s.list
	s.list = nil
	s.mu.Unlock()
	var errs []error
	for _, u := range list {
		for _, server := range u.servers {
			errs = append(errs, server.ShutdownContext(ctx))
		}
		u.done.Wait()
	}
	return errors.Join(errs...)
}
