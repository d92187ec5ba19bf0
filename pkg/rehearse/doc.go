// Package rehearse is the judge: CoreDNS 1.15.0 in this process, with the Corefile of a user over a snapshot of a cluster.
// What it says about a query is what the server's own code says, not what a model believes.
//
// A Corefile is hostile input, and CoreDNS takes the machine it runs on for its own. So nothing of the user's text
// reaches it as it is: the text is expanded by package corefile from the snapshot, every directive is looked up in one
// table (plugins.go) and printed again, and what is not in the table does not run. In detail:
//
//   - There are no listeners. Servers are made and asked by a function call, whatever their ports and transports are.
//   - The kubernetes plugin answers from the snapshot, which stands in for its caches of an API server.
//   - Upstreams are replaced by stubs on loopback ports, which record what they are asked and answer what the caller
//     says. Nothing else touches a socket; host names of upstreams are not resolved.
//   - Files come from the volumes of the snapshot. They are copied into a private directory, because plugins open them by
//     path; a path is never handed through. The environment was filled in from the snapshot, and a reference that is
//     left is refused. The one file of the operator that is opened is /etc/resolv.conf, by kubernetes.ParseStanza;
//     what it says is not used.
//   - Plugins that run commands, dial out, open ports or end the process are not linked in, or not called: a stand-in
//     reads their arguments.
//   - Templates and expressions that could run or grow without bound are not run.
//
// The plugins run in the order of the release that the user runs (orders.txt), because CoreDNS fixes the order when it
// is compiled. Everything else is CoreDNS 1.15.0: see Refusal for what that means for its word.
package rehearse
