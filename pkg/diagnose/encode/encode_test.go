package encode

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/dnsmesh/kubectl-dnsmesh/internal/golden"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/diagnose"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

func TestGolden(t *testing.T) {
	for name, r := range map[string]*diagnose.Report{"full": full(), "clean": clean(), "blind": blind()} {
		for format := range encoders() {
			golden.Compare(t, filepath.Join("testdata", name+"."+format+".golden"), encoded(t, format, r))
		}
	}
}

// The report is the caller's: encoders must not fill in its empty lists.
func TestReportUnchanged(t *testing.T) {
	for _, fixture := range []func() *diagnose.Report{full, clean, blind} {
		for format := range encoders() {
			r := fixture()
			encoded(t, format, r)
			if diff := cmp.Diff(fixture(), r); diff != "" {
				t.Errorf("%s changes the report (-want +got):\n%s", format, diff)
			}
		}
	}
}

func reportSchema(t testing.TB) (*jsonschema.Schema, map[string]any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "report.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("report.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("report.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema, doc.(map[string]any)
}

// valid fails the test unless the schema accepts a JSON text.
func valid(t *testing.T, schema *jsonschema.Schema, data []byte) {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(doc); err != nil {
		t.Errorf("%v\n%s", err, data)
	}
}

func TestReportsMatchSchema(t *testing.T) {
	schema, _ := reportSchema(t)
	reports := append(hostileReports(), full(), clean(), blind(), &diagnose.Report{APIVersion: diagnose.APIVersion, Kind: diagnose.ReportKind})
	for _, r := range reports {
		valid(t, schema, encoded(t, "json", r))
		data, err := yaml.YAMLToJSON(encoded(t, "yaml", r))
		if err != nil {
			t.Fatal(err)
		}
		valid(t, schema, data)
	}
}

func TestSchemaRefuses(t *testing.T) {
	schema, _ := reportSchema(t)
	report := string(encoded(t, "json", full()))
	for _, change := range [][2]string{
		{`"kind": "Report"`, `"kind": "List"`},
		{`"apiVersion": "dnsmesh.io/v1alpha1"`, `"apiVersion": "v1"`},
		{`"severity": "info"`, `"severity": "none"`},
		{`"code": "DM1009"`, `"code": "DM109"`},
		{`"line": 9`, `"line": 0`},
		{`"checks": 9`, `"checks": -1`},
		{`"suppressed": 2`, `"ignored": 2`},
		{`"pods": 17012`, `"pods": "many"`},
		{`"partly": true`, `"partly": true, "more": 1`},
	} {
		changed := strings.Replace(report, change[0], change[1], 1)
		if changed == report {
			t.Fatalf("the report has no %s", change[0])
		}
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(changed))
		if err != nil {
			t.Fatal(err)
		}
		if schema.Validate(doc) == nil {
			t.Errorf("the schema accepts %s", change[1])
		}
	}
}

// TestSchemaMatchesTypes compares the schema with the Go types: the same properties of the same types, required where
// the encoder always writes them, each described, and no others allowed.
func TestSchemaMatchesTypes(t *testing.T) {
	_, root := reportSchema(t)
	defs := root["$defs"].(map[string]any)
	resolve := func(schema map[string]any) map[string]any {
		if ref, ok := schema["$ref"].(string); ok {
			return defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		}
		return schema
	}
	visited := map[reflect.Type]bool{}
	var compare func(path string, typ reflect.Type, schema map[string]any)
	compare = func(path string, typ reflect.Type, schema map[string]any) {
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		schema = resolve(schema)
		want := map[reflect.Kind]string{
			reflect.Struct: "object", reflect.Map: "object", reflect.Slice: "array",
			reflect.String: "string", reflect.Int: "integer", reflect.Bool: "boolean",
		}[typ.Kind()]
		if typ == reflect.TypeFor[finding.Severity]() {
			want = "string" // it marshals itself as text
		}
		if schema["type"] != want {
			t.Errorf("%s: the schema says %v, the Go type %s", path, schema["type"], typ)
		}
		switch typ.Kind() {
		case reflect.Slice:
			compare(path+"[]", typ.Elem(), schema["items"].(map[string]any))
			return
		case reflect.Map:
			compare(path+"{}", typ.Elem(), schema["additionalProperties"].(map[string]any))
			return
		case reflect.Struct:
		default:
			return
		}
		if visited[typ] {
			return
		}
		visited[typ] = true
		properties := schema["properties"].(map[string]any)
		var names, required []string
		for i := range typ.NumField() {
			name, options, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			names = append(names, name)
			if options != "omitempty" {
				required = append(required, name)
			}
			property, ok := properties[name].(map[string]any)
			if !ok {
				t.Errorf("%s: the schema has no property %s", path, name)
				continue
			}
			if property["description"] == nil {
				t.Errorf("%s: property %s is not described", path, name)
			}
			compare(path+"."+name, typ.Field(i).Type, property)
		}
		for name := range properties {
			if !slices.Contains(names, name) {
				t.Errorf("%s: property %s is in no Go type", path, name)
			}
		}
		var got []string
		for _, name := range schema["required"].([]any) {
			got = append(got, name.(string))
		}
		if diff := cmp.Diff(required, got, cmpopts.SortSlices(strings.Compare)); diff != "" {
			t.Errorf("%s: required properties (-Go type +schema):\n%s", path, diff)
		}
		if schema["additionalProperties"] != false {
			t.Errorf("%s: the schema allows other properties", path)
		}
	}
	compare("Report", reflect.TypeFor[diagnose.Report](), root)
	if !visited[reflect.TypeFor[finding.Fix]()] || !visited[reflect.TypeFor[diagnose.DNSSummary]()] {
		t.Error("the walk does not reach the innermost types")
	}
}

// TestFullIsFull keeps the fixture of the golden files complete when a field is added.
func TestFullIsFull(t *testing.T) {
	empty := map[string]bool{} // by type and field: whether no value sets it
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				walk(v.Elem())
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				name := v.Type().String() + "." + v.Type().Field(i).Name
				before, seen := empty[name]
				empty[name] = v.Field(i).IsZero() && (before || !seen)
				walk(v.Field(i))
			}
		}
	}
	walk(reflect.ValueOf(full()))
	if len(empty) == 0 {
		t.Fatal("no field was found")
	}
	for name, isEmpty := range empty {
		if isEmpty {
			t.Errorf("no value sets %s", name)
		}
	}
}

// roundTrip fails the test unless JSON and YAML both hold the report exactly, and the same in both.
func roundTrip(t *testing.T, r *diagnose.Report) {
	t.Helper()
	inJSON := encoded(t, "json", r)
	inYAML := encoded(t, "yaml", r)
	var got diagnose.Report
	if err := json.Unmarshal(inJSON, &got); err != nil {
		t.Fatalf("%v in\n%s", err, inJSON)
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if utf8.Valid(data) && !bytes.Contains(data, []byte(`\ufffd`)) {
		if diff := cmp.Diff(normal(r), &got); diff != "" {
			t.Errorf("JSON loses something (-want +got):\n%s", diff)
		}
	}
	var fromYAML diagnose.Report
	if err := yaml.UnmarshalStrict(inYAML, &fromYAML); err != nil {
		t.Fatalf("%v in\n%s", err, inYAML)
	}
	if diff := cmp.Diff(got, fromYAML); diff != "" {
		t.Errorf("JSON and YAML differ (-JSON +YAML):\n%s", diff)
	}
}

func TestRoundTrip(t *testing.T) {
	for _, r := range append(hostileReports(), full(), clean(), blind()) {
		roundTrip(t, r)
	}
}

func TestJSONKeepsHTML(t *testing.T) {
	r := full()
	r.Findings[0].Message = "a <b> & c"
	if out := encoded(t, "json", r); !bytes.Contains(out, []byte(`"a <b> & c"`)) {
		t.Errorf("angle brackets are escaped:\n%s", out)
	}
}

func FuzzJSON(f *testing.F) {
	addTexts(f)
	f.Fuzz(func(t *testing.T, name, message, text, block string) {
		roundTrip(t, hostile(name, message, text, block))
	})
}
