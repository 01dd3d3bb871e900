package dirlock

import "testing"

func FuzzOwner(f *testing.F) {
	o := Owner{Token: "0123456789abcdef0123456789abcdef", Host: "h", PID: 1, Beat: 1e9}
	raw, err := o.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(`{"token":"../../../../../../../../../../x"}`))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		o, err := decode(raw)
		if err != nil {
			return
		}
		for _, c := range o.Token { // it becomes a part of a file name
			if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
				t.Fatalf("accepted the token %q", o.Token)
			}
		}
		_ = o.String()
	})
}
