// Package corefile reads, edits, prints and expands the configuration file of CoreDNS without losing a byte of it.
//
// The specification is the code that CoreDNS itself runs, package caddyfile of github.com/coredns/caddy: lexer.go says
// what a word is, parse.go which words make a server block and a directive, dispenser.go what a line is. Comments of
// this package name the file a rule comes from; the fuzz targets compare the two.
//
// There are two views of a Corefile, made of the same types:
//
//   - [Parse] and [ParseBody] give the file as it is written. Every token knows its bytes, so an [Edit] touches nothing
//     else. Imports and references to the environment stand as they are spelled.
//   - [Expand] gives what the server sees: snippets and imported files in place, the environment filled in. Every token
//     still knows the file and the bytes it was written in, and through which imports it came.
//
// # Differences from caddyfile
//
// Parse judges one file by itself: it does not know what an import or a reference to the environment becomes, so a file
// that is only well formed, or only malformed, after expansion is judged by its spelling. Expand agrees with
// caddyfile.Parse, except that it refuses what exceeds a limit of this package: [MaxSize], [MaxDepth], the limits of
// [Options], an import that imports itself (which caddy follows until its own limit), and a variable that
// contains itself (which caddy expands forever).
//
// The package uses the standard library only, reads neither files nor the environment, and holds no state.
package corefile
