package message

import "encoding/json"

// Fields are those of a JSON object, by their exact names: json.Unmarshal into a struct would take `Text` for `text`.
type Fields struct {
	values map[string]json.RawMessage
	// within names the object, with a dot behind it.
	within string
	// failure is the first one; kind is what it will be.
	failure *Failure
	kind    Kind
}

// parseFields reads an object. Its later failures are of this kind.
func parseFields(text []byte, within string, kind Kind) (*Fields, *Failure) {
	f := &Fields{within: within, kind: kind}
	// A `null` makes no map.
	if err := json.Unmarshal(text, &f.values); err != nil || f.values == nil {
		return nil, Failed(kind, "not a JSON object")
	}
	return f, nil
}

func (f *Fields) fail(format string, arguments ...any) {
	if f.failure == nil {
		f.failure = Failed(f.kind, format, arguments...)
	}
}

// present says whether a field is there; `null` counts as missing.
func (f *Fields) present(name string) bool {
	value, ok := f.values[name]
	return ok && string(value) != "null"
}

// needed reads a field that must be there.
func needed[T string | bool | float64](f *Fields, name string) T {
	if !f.present(name) {
		f.fail("%s%s is missing", f.within, name)
	}
	var none T
	return optional(f, name, none)
}

// optional reads a field that may be missing.
func optional[T string | bool | float64](f *Fields, name string, otherwise T) T {
	value := otherwise
	if f.present(name) {
		if err := json.Unmarshal(f.values[name], &value); err != nil {
			f.fail("%s%s: another type is needed", f.within, name)
		}
	}
	return value
}

// object reads an object that must be there; without one it is empty.
func (f *Fields) object(name string) *Fields {
	within := f.within + name
	if !f.present(name) {
		f.fail("%s is missing", within)
		return &Fields{failure: f.failure}
	}
	fields, failure := parseFields(f.values[name], within+".", f.kind)
	if failure != nil {
		f.fail("%s: not a JSON object", within)
		return &Fields{failure: f.failure}
	}
	return fields
}
