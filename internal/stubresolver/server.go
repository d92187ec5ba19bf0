//go:build linux

package stubresolver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// Servers is how many nameservers a lane has.
const Servers = 3

// silence is how long a connection stays open after a query that gets no answer: longer than a time-out of one second.
const silence = 1500 * time.Millisecond

// Address is that of a nameserver by its index, as a resolv.conf names it.
func Address(server int) string { return fmt.Sprintf("127.0.0.%d", server+1) }

// Query is a question that reached a nameserver. Name is absolute and lower case; it is empty for what is no DNS query.
type Query struct {
	Server int
	Name   string
	AAAA   bool
	TCP    bool
}

// String returns the query as one word for each part.
func (q Query) String() string {
	s := fmt.Sprintf("server %d: %s A", q.Server, q.Name)
	if q.AAAA {
		s += "AAA"
	}
	if q.TCP {
		s += " over TCP"
	}
	return s
}

// Reply is what a nameserver does with a question.
type Reply struct {
	// Silent leaves a query without answer. A connection is closed then, a while after the last query on it.
	Silent bool
	Rcode  int
	// Alias is the target of a CNAME record, absolute; the addresses are those of the target then. Empty for none.
	Alias string
	// Addresses are of the type asked for.
	Addresses []netip.Addr
	// Truncated cuts the answer to one address and sets TC, over UDP.
	Truncated bool
}

// Zone decides what the nameserver with the index answers.
type Zone func(server int, name string, aaaa bool) Reply

// nameservers answer on port 53 of loopback addresses. Queries are logged in the order in which they are answered.
type nameservers struct {
	mu   sync.Mutex
	zone Zone
	log  []Query
	err  error

	packets   []net.PacketConn
	listeners []net.Listener
	barrier   net.PacketConn
	running   sync.WaitGroup
}

// listen opens the sockets in the network namespace of the calling thread.
func (n *nameservers) listen() error {
	for i := range Servers {
		address := net.JoinHostPort(Address(i), "53")
		packets, err := net.ListenPacket("udp4", address)
		if err != nil {
			return fmt.Errorf("opening a nameserver: %w", err)
		}
		n.packets = append(n.packets, packets)
		streams, err := net.Listen("tcp4", address)
		if err != nil {
			return fmt.Errorf("opening a nameserver: %w", err)
		}
		n.listeners = append(n.listeners, streams)
	}
	var err error
	if n.barrier, err = net.ListenPacket("udp4", "127.0.0.1:0"); err != nil {
		return fmt.Errorf("opening a socket: %w", err)
	}
	for i := range Servers {
		n.running.Go(func() { n.servePackets(i) })
		n.running.Go(func() { n.serveStreams(i) })
	}
	return nil
}

func (n *nameservers) close() {
	for _, c := range n.packets {
		c.Close()
	}
	for _, l := range n.listeners {
		l.Close()
	}
	if n.barrier != nil {
		n.barrier.Close()
	}
	n.running.Wait()
}

// set starts a new log.
func (n *nameservers) set(zone Zone) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.zone, n.log, n.err = zone, nil, nil
}

// queries returns the log when every datagram that was sent so far is in it.
func (n *nameservers) queries() ([]Query, error) {
	buf := make([]byte, 16)
	for i, server := range n.packets {
		if _, err := n.barrier.WriteTo([]byte{byte(i)}, server.LocalAddr()); err != nil {
			return nil, fmt.Errorf("waiting for a nameserver: %w", err)
		}
		if err := n.barrier.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			return nil, fmt.Errorf("waiting for a nameserver: %w", err)
		}
		if _, _, err := n.barrier.ReadFrom(buf); err != nil {
			return nil, fmt.Errorf("waiting for a nameserver: %w", err)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.log, n.err
}

func (n *nameservers) servePackets(server int) {
	conn := n.packets[server]
	buf := make([]byte, 4096)
	for {
		size, from, err := conn.ReadFrom(buf)
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				n.fail(err)
			}
			return
		}
		if size == 1 {
			if _, err := conn.WriteTo(buf[:1], from); err != nil { // the barrier of queries
				n.fail(err)
			}
			continue
		}
		n.answer(server, buf[:size], false, func(reply []byte) {
			_, _ = conn.WriteTo(reply, from) // the one who asked may be gone
		})
	}
}

func (n *nameservers) serveStreams(server int) {
	for {
		conn, err := n.listeners[server].Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				n.fail(err)
			}
			return
		}
		n.running.Go(func() { n.serveStream(server, conn) })
	}
}

func (n *nameservers) serveStream(server int, conn net.Conn) {
	defer conn.Close()
	deadline := time.Now().Add(10 * time.Second)
	for silent := false; ; {
		if silent {
			// Go gives up after its time-out, glibc waits until the connection is closed.
			deadline = time.Now().Add(silence)
		}
		if conn.SetReadDeadline(deadline) != nil {
			return
		}
		var length [2]byte
		if _, err := io.ReadFull(conn, length[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(length[:]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		silent = true
		n.answer(server, query, true, func(reply []byte) {
			silent = false
			_, _ = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
		})
	}
}

func (n *nameservers) fail(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.err = errors.Join(n.err, err)
}

// answer logs a query and sends the reply, if there is one. One query at a time is answered, so the log has the order
// in which replies reach the one who asked.
func (n *nameservers) answer(server int, query []byte, tcp bool, send func([]byte)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var p dnsmessage.Parser
	header, err := p.Start(query)
	if err != nil {
		n.log = append(n.log, Query{Server: server, TCP: tcp})
		return
	}
	q, err := p.Question()
	if err != nil || q.Type != dnsmessage.TypeA && q.Type != dnsmessage.TypeAAAA {
		n.log = append(n.log, Query{Server: server, TCP: tcp})
		return
	}
	name, aaaa := strings.ToLower(q.Name.String()), q.Type == dnsmessage.TypeAAAA
	n.log = append(n.log, Query{Server: server, Name: name, AAAA: aaaa, TCP: tcp})
	if n.zone == nil {
		return
	}
	reply := n.zone(server, name, aaaa)
	if reply.Silent {
		return
	}
	message, err := reply.pack(header, q, tcp)
	if err != nil {
		n.err = errors.Join(n.err, fmt.Errorf("packing the reply for %s: %w", name, err))
		return
	}
	send(message)
}

func (r Reply) pack(query dnsmessage.Header, q dnsmessage.Question, tcp bool) ([]byte, error) {
	cut := r.Truncated && !tcp
	addresses := r.Addresses
	if cut && len(addresses) > 1 {
		addresses = addresses[:1]
	}
	m := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: query.ID, Response: true, RecursionDesired: query.RecursionDesired, RecursionAvailable: true,
			RCode: dnsmessage.RCode(r.Rcode), Truncated: cut,
		},
		Questions: []dnsmessage.Question{q},
	}
	owner := q.Name
	if r.Alias != "" {
		target, err := dnsmessage.NewName(r.Alias)
		if err != nil {
			return nil, err
		}
		m.Answers = append(m.Answers, resource(owner, dnsmessage.TypeCNAME, &dnsmessage.CNAMEResource{CNAME: target}))
		owner = target
	}
	for _, addr := range addresses {
		if q.Type == dnsmessage.TypeAAAA {
			m.Answers = append(m.Answers, resource(owner, q.Type, &dnsmessage.AAAAResource{AAAA: addr.As16()}))
		} else {
			m.Answers = append(m.Answers, resource(owner, q.Type, &dnsmessage.AResource{A: addr.As4()}))
		}
	}
	return m.Pack()
}

func resource(name dnsmessage.Name, t dnsmessage.Type, body dnsmessage.ResourceBody) dnsmessage.Resource {
	return dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: name, Type: t, Class: dnsmessage.ClassINET, TTL: 5}, Body: body}
}
