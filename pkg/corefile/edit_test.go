package corefile

import (
	"testing"
)

func TestEdits(t *testing.T) {
	const main = "# zone\n. { # dot\n  errors\n\n  # logs\n  log a#b c # all\n  forward . 192.0.2.1 {\n    policy random # spread\n  }\n}\n"
	for _, test := range []struct {
		name, src string
		edit      func(f *File) (Edit, error)
		want      string
	}{
		{
			"insert in front of a directive and its comments", main,
			func(f *File) (Edit, error) { return f.Blocks[0].Insert(1, "cache 30 {\n prefetch 1\n}") },
			"# zone\n. { # dot\n  errors\n\n  cache 30 {\n    prefetch 1\n  }\n  # logs\n  log a#b c # all\n  forward . 192.0.2.1 {\n    policy random # spread\n  }\n}\n",
		},
		{
			"insert at the end", main,
			func(f *File) (Edit, error) { return f.Blocks[0].Insert(3, "loop") },
			main[:len(main)-2] + "  loop\n}\n",
		},
		{
			"insert into a directive", main,
			func(f *File) (Edit, error) { return f.Blocks[0].Body[2].Insert(1, "max_fails 3") },
			main[:len(main)-6] + "    max_fails 3\n  }\n}\n",
		},
		{
			"insert gives a directive its block", main,
			func(f *File) (Edit, error) { return f.Blocks[0].Body[1].Insert(0, "class error") },
			"# zone\n. { # dot\n  errors\n\n  # logs\n  log a#b c {\n    class error\n  } # all\n  forward . 192.0.2.1 {\n    policy random # spread\n  }\n}\n",
		},
		{
			"delete a directive with its comments", main,
			func(f *File) (Edit, error) { return f.Blocks[0].Body[1].Delete() },
			"# zone\n. { # dot\n  errors\n\n  forward . 192.0.2.1 {\n    policy random # spread\n  }\n}\n",
		},
		{
			"delete a line of a directive", main,
			func(f *File) (Edit, error) { return f.Blocks[0].Body[2].Body[0].Delete() },
			"# zone\n. { # dot\n  errors\n\n  # logs\n  log a#b c # all\n  forward . 192.0.2.1 {\n  }\n}\n",
		},
		{
			"replace keeps comments", main,
			func(f *File) (Edit, error) {
				return f.Blocks[0].Body[2].Body[0].Replace("policy sequential\nmax_fails 1")
			},
			"# zone\n. { # dot\n  errors\n\n  # logs\n  log a#b c # all\n  forward . 192.0.2.1 {\n    policy sequential\n    max_fails 1 # spread\n  }\n}\n",
		},
		{
			"replace an argument", main,
			func(f *File) (Edit, error) { return f.Blocks[0].Body[2].Args[1].Replace("192.0.2.2") },
			"# zone\n. { # dot\n  errors\n\n  # logs\n  log a#b c # all\n  forward . 192.0.2.2 {\n    policy random # spread\n  }\n}\n",
		},
		{
			"append arguments", main,
			func(f *File) (Edit, error) { return f.Blocks[0].Body[2].AppendArgs("192.0.2.2", "a b") },
			"# zone\n. { # dot\n  errors\n\n  # logs\n  log a#b c # all\n  forward . 192.0.2.1 192.0.2.2 \"a b\" {\n    policy random # spread\n  }\n}\n",
		},
		{
			"argument in front of a comment that sticks", "a {\nlog a#b\n}",
			func(f *File) (Edit, error) { return f.Blocks[0].Body[0].AppendArgs("x") }, "a {\nlog a#b x\n}",
		},
		{
			"delete a block", "a {\n}\n\n# b\nb {\n} # b\nc {\n}\n",
			func(f *File) (Edit, error) { return f.Blocks[1].Delete() }, "a {\n}\n\nc {\n}\n",
		},
		{
			"delete a block between others on a line", "a {\n} b {\n} c {\n}\n",
			func(f *File) (Edit, error) { return f.Blocks[1].Delete() }, "a {\n}  c {\n}\n",
		},
		{
			"line endings and tabs", ".:53 {\r\n\terrors\r\n}\r\n",
			func(f *File) (Edit, error) { return f.Blocks[0].Insert(1, "log {\n    class error\n}\n") },
			".:53 {\r\n\terrors\r\n\tlog {\r\n\t\tclass error\r\n\t}\r\n}\r\n",
		},
		{
			"line breaks in quotes stay", ". {\n    log\n}\n",
			func(f *File) (Edit, error) { return f.Blocks[0].Insert(0, "x \"a\n  b\"\ny") },
			". {\n    x \"a\n  b\"\n    y\n    log\n}\n",
		},
		{"block on one line", ". { }", func(f *File) (Edit, error) { return f.Blocks[0].Insert(0, "log") }, ". { \n    log\n}"},
		{
			"directive on the line of the brace", ". { log\n}",
			func(f *File) (Edit, error) { return f.Blocks[0].Insert(0, "errors") }, ". { \n    errors\n    log\n}",
		},
		{"no braces", ".\nerrors", func(f *File) (Edit, error) { return f.Blocks[0].Insert(1, "log") }, ".\nerrors\nlog\n"},
		{
			"the missing brace is added", ". {\n  log {\n  }\n",
			func(f *File) (Edit, error) { return f.Blocks[0].Insert(1, "errors") }, ". {\n  log {\n  }\n  errors\n}\n",
		},
		{
			"append a block", ". {\n  log\n}", func(f *File) (Edit, error) { return f.AppendBlock("# b\nb {\nlog\n}") },
			". {\n  log\n}\n\n# b\nb {\n  log\n}\n",
		},
		{
			"append a block after a blank line", ". {\r\n}\r\n\r\n", func(f *File) (Edit, error) { return f.AppendBlock("b {\nlog\n}") },
			". {\r\n}\r\n\r\nb {\r\n    log\r\n}\r\n",
		},
		{"append a block to nothing", "", func(f *File) (Edit, error) { return f.AppendBlock("b {\nlog\n}") }, "b {\n    log\n}\n"},
		{"a key keeps its comma", "a, b {\n}", func(f *File) (Edit, error) { return f.Blocks[0].Keys[0].Replace("c") }, "c, b {\n}"},
		{"a quoted key keeps its comma", "\"a,\" b {\n}", func(f *File) (Edit, error) { return f.Blocks[0].Keys[0].Replace("c d") }, "\"c d,\" b {\n}"},
		{"replaced word stays apart", "a {\nx \"b\"\"c\"\n}", func(f *File) (Edit, error) { return f.Blocks[0].Body[0].Args[0].Replace("d") }, "a {\nx d \"c\"\n}"},

		{"no spelling", main, func(f *File) (Edit, error) { return f.Blocks[0].Body[1].Args[0].Replace(`a b\`) }, ""},
		{"brace as an argument", main, func(f *File) (Edit, error) { return f.Blocks[0].Body[1].Args[0].Replace("{") }, ""},
		{"comment that sticks would take the line", main, func(f *File) (Edit, error) { return f.Blocks[0].Body[1].Args[0].Replace("a b") }, ""},
		{"broken text", main, func(f *File) (Edit, error) { return f.Blocks[0].Insert(0, "log {") }, ""},
		{"unbalanced text", main, func(f *File) (Edit, error) { return f.Blocks[0].Insert(0, "log\n}\nb {\nlog") }, ""},
		{"unclosed text", main, func(f *File) (Edit, error) { return f.Blocks[0].Insert(0, "log \"a") }, ""},
		{"empty text", main, func(f *File) (Edit, error) { return f.Blocks[0].Insert(0, " # nothing\n") }, ""},
		{"no such place", main, func(f *File) (Edit, error) { return f.Blocks[0].Insert(4, "log") }, ""},
		{"file without braces takes no block", ".\nlog\n", func(f *File) (Edit, error) { return f.AppendBlock("b {\n}") }, ""},
		{"block without braces is not appended", main, func(f *File) (Edit, error) { return f.AppendBlock("b\nlog") }, ""},
		{"broken file takes no block", ". {\n", func(f *File) (Edit, error) { return f.AppendBlock("b {\n}") }, ""},
		{"unclosed file takes nothing", ". {\nlog\n}\nb \"", func(f *File) (Edit, error) { return f.Blocks[1].Insert(0, "log") }, ""},
		{"comment would take the rest of the line", ". {\nlog { class all }\n}", func(f *File) (Edit, error) { return f.Blocks[0].Body[0].Body[0].Replace("class error # x") }, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, _ := Parse("Corefile", []byte(test.src))
			edit, err := test.edit(f)
			if test.want == "" {
				if err == nil {
					t.Fatalf("no error, edit %+v", edit)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := Apply([]byte(test.src), []Edit{edit})
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
			if _, err := Parse("Corefile", got); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFormat(t *testing.T) {
	for _, test := range []struct{ name, src, want string }{
		{"indentation and blanks", "\n\n.:53   {\n\terrors\n  log {\n class   all\n}\n}\n\n\n", ".:53 {\n    errors\n    log {\n        class all\n    }\n}\n"},
		{"blank lines", "a {\n\n\nlog\n\n\n\nerrors\n\n}\n\n\nb {\n}", "a {\n    log\n\n    errors\n}\n\nb {\n}\n"},
		{"comments", "# a  \r\n. {# b\r\n# c\r\nlog a#b c   # d\r\n}#e f\r\n", "# a\n. {# b\n    # c\n    log a#b c # d\n}#e f\n"},
		{"quotes keep their spelling", "a {\nx  \"b\"\"c  d\" \"e\n  f\"\n}", "a {\n    x \"b\" \"c  d\" \"e\n  f\"\n}\n"},
		{"lines are neither split nor joined", ". { errors\n}\nb\n{\n}", ". { errors\n}\nb\n{\n}\n"},
		{"byte order mark", "\ufeffa {\r\n}", "a {\n}\n"},
		{"unclosed quotes are closed", ". {\n}\nb \"c", ". {\n}\nb \"c\"\n"},
		{"nothing", " \n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, _ := Parse("", []byte(test.src))
			if got := string(Format(f)); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}
