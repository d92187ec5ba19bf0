//go:build linux

package stubresolver

import (
	"bufio"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// patience is how long a look-up may take. Resolvers with a time-out of one second end much earlier.
const patience = 2 * time.Minute

// Outcome is the end of a look-up: the status by the name that getaddrinfo or the Go probe gives it (OK, EAI_NONAME,
// NOTFOUND …) and the addresses, sorted, each once.
type Outcome struct {
	Status    string
	Addresses []netip.Addr
}

// Lane is a place in which one look-up at a time is made.
type Lane struct {
	servers nameservers
	etc     string
	probes  []*probe
	end     chan struct{}
	ended   chan struct{}
}

// probe is a running program.
type probe struct {
	process *os.Process
	in      *os.File
	out     *os.File
	lines   *bufio.Reader
}

// NewLane starts the probes and the nameservers. dir has to be an empty directory.
func NewLane(programs []Program, dir string) (*Lane, error) {
	l := &Lane{etc: dir, end: make(chan struct{}), ended: make(chan struct{})}
	files := map[string]string{
		"resolv.conf": "", "hosts": "127.0.0.1 localhost\n::1 localhost\n", "nsswitch.conf": "hosts: files dns\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return nil, fmt.Errorf("writing files of a lane: %w", err)
		}
	}
	started := make(chan error)
	go func() {
		defer close(l.ended)
		// The thread never gets out of the namespace again; not being unlocked, it ends with this goroutine. Programs are
		// killed when the thread that started them ends, so it stays until the lane is closed.
		runtime.LockOSThread()
		err := l.start(programs)
		started <- err
		if err == nil {
			<-l.end
		}
	}()
	if err := <-started; err != nil {
		return nil, errors.Join(err, l.stop())
	}
	return l, nil
}

func (l *Lane) start(programs []Program) error {
	if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
		return fmt.Errorf("making a network namespace: %w", err)
	}
	if err := raiseLoopback(); err != nil {
		return fmt.Errorf("raising loopback: %w", err)
	}
	if err := l.servers.listen(); err != nil {
		return err
	}
	for _, p := range programs {
		running, err := p.start(l.etc)
		if err != nil {
			return fmt.Errorf("starting the probe of %s %s: %w", p.Library, p.Version, err)
		}
		l.probes = append(l.probes, running)
	}
	return nil
}

// raiseLoopback sets the flag "up" of the interface lo, which gives it its address (netdevice(7)).
func raiseLoopback() error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	request := struct {
		name  [syscall.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}{name: [syscall.IFNAMSIZ]byte{'l', 'o'}, flags: syscall.IFF_UP | syscall.IFF_RUNNING}
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return errno
	}
	return nil
}

func (p Program) start(etc string) (*probe, error) {
	stdin, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	out, stdout, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	defer stdout.Close()
	process, err := os.StartProcess(p.command, append([]string{p.command, etc}, p.args...), &os.ProcAttr{
		Env:   []string{},
		Files: []*os.File{stdin, stdout, os.Stderr},
		Sys:   &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return nil, errors.Join(err, in.Close(), out.Close())
	}
	return &probe{process, in, out, bufio.NewReader(out)}, nil
}

// Close ends the probes and the nameservers.
func (l *Lane) Close() error {
	close(l.end)
	return l.stop()
}

func (l *Lane) stop() error {
	<-l.ended
	var errs []error
	for _, p := range l.probes {
		p.in.Close()
		p.out.Close()
		if err := p.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			errs = append(errs, fmt.Errorf("ending a probe: %w", err))
		}
		if _, err := p.process.Wait(); err != nil {
			errs = append(errs, fmt.Errorf("ending a probe: %w", err))
		}
	}
	l.servers.close()
	return errors.Join(errs...)
}

// Configure sets the resolv.conf and the names of the hosts file, which beside localhost have the address 192.0.2.250.
func (l *Lane) Configure(resolvConf string, hosts []string) error {
	var b strings.Builder
	b.WriteString("127.0.0.1 localhost\n::1 localhost\n")
	for _, h := range hosts {
		fmt.Fprintf(&b, "192.0.2.250 %s\n", h)
	}
	// Written in place: the probes have the directory mounted.
	for name, text := range map[string]string{"resolv.conf": resolvConf, "hosts": b.String()} {
		if err := os.WriteFile(filepath.Join(l.etc, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("configuring a lane: %w", err)
		}
	}
	return nil
}

// Lookup lets the program with the index look host up while the nameservers answer as zone says, and returns what came
// of it and the queries in the order in which they were answered.
func (l *Lane) Lookup(program int, host string, zone Zone) (Outcome, []Query, error) {
	l.servers.set(zone)
	p := l.probes[program]
	line, err := p.lookup(host)
	if err != nil {
		return Outcome{}, nil, fmt.Errorf("looking up %q: %w", host, err)
	}
	queries, err := l.servers.queries()
	if err != nil {
		return Outcome{}, nil, fmt.Errorf("looking up %q: %w", host, err)
	}
	outcome, err := parse(line)
	if err != nil {
		return Outcome{}, nil, fmt.Errorf("looking up %q: %w", host, err)
	}
	return outcome, queries, nil
}

func (p *probe) lookup(host string) (string, error) {
	if strings.ContainsAny(host, "\n\x00") {
		return "", errors.New("a probe reads lines")
	}
	if _, err := p.in.WriteString(host + "\n"); err != nil {
		return "", err
	}
	if err := p.out.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	return p.lines.ReadString('\n')
}

func parse(line string) (Outcome, error) {
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return Outcome{}, errors.New("the probe printed an empty line")
	}
	o := Outcome{Status: fields[0]}
	if o.Status != "OK" {
		o.Status = strings.Join(fields, " ")
		return o, nil
	}
	for _, f := range fields[1:] {
		addr, err := netip.ParseAddr(f)
		if err != nil {
			return Outcome{}, fmt.Errorf("the probe printed %q: %w", line, err)
		}
		o.Addresses = append(o.Addresses, addr.WithZone(""))
	}
	slices.SortFunc(o.Addresses, netip.Addr.Compare)
	o.Addresses = slices.Compact(o.Addresses)
	return o, nil
}
