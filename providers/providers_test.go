package providers_test

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lakecode/lakecode/providers"
)

const canary = "sk-canary-0123456789"

// No way of printing or encoding a secret, alone or deep inside something, shows
// its value.
func TestSecretStaysSecret(t *testing.T) {
	s := providers.NewSecret(canary)
	type hidden struct {
		inner struct{ key providers.Secret }
	}
	var deep hidden
	deep.inner.key = s
	snap := providers.Snapshot{Provider: "p", Key: s}
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T", "%10.3s", "%p"} {
		for _, v := range []any{s, &s, snap, &snap, deep, &deep, []providers.Secret{s}, map[string]providers.Secret{"k": s}, []any{s}, fmt.Errorf("about %v", s), struct{ k []providers.Secret }{[]providers.Secret{s}}} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
	}
	fmt.Fprintln(&out, s, s.String(), s.GoString())
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(h).Info("x", "key", s, "snap", snap, "group", slog.GroupValue(slog.Any("key", s)))
	}
	for _, v := range []any{s, snap, &snap, map[string]any{"k": s}} {
		b, err := json.Marshal(v)
		if err == nil {
			t.Errorf("%T was encoded as JSON: %s", v, b)
		}
		out.Write(b)
		fmt.Fprintln(&out, err)
	}
	if b, err := xml.Marshal(s); err == nil {
		t.Errorf("encoded as XML: %s", b)
	}
	var buf bytes.Buffer
	if err := gob.NewEncoder(&buf).Encode(snap); err == nil {
		t.Errorf("encoded as gob: %q", buf.Bytes())
	}
	out.Write(buf.Bytes())
	for _, piece := range []string{canary, "canary", fmt.Sprintf("%x", canary), fmt.Sprintf("%X", canary), "012345"} {
		if strings.Contains(out.String(), piece) {
			t.Errorf("%q is in the output:\n%s", piece, out.String())
		}
	}
	if s.Reveal() != canary || s.IsZero() {
		t.Error("the secret lost its value")
	}
}

func TestNoSecret(t *testing.T) {
	for _, s := range []providers.Secret{{}, providers.NewSecret("")} {
		if !s.IsZero() || s.Reveal() != "" {
			t.Errorf("%v is not zero", s)
		}
		b, err := json.Marshal(struct {
			Key providers.Secret `json:",omitzero"`
		}{s})
		if err != nil || string(b) != "{}" {
			t.Errorf("%s, %v", b, err)
		}
	}
}

func TestErrorText(t *testing.T) {
	for want, e := range map[string]*providers.Error{
		"Local (m): HTTP 429: slow down": {Kind: providers.RateLimited, Provider: "Local", Model: "m", Status: 429, Message: "slow down", Next: "wait"},
		"Local: no":                      {Provider: "Local", Message: "no"},
		" (m): no":                       {Model: "m", Message: "no"},
		"HTTP 500: no":                   {Status: 500, Message: "no", Err: errors.New("secret cause")},
		"no":                             {Message: "no"},
	} {
		if e.Error() != want {
			t.Errorf("%q, want %q", e.Error(), want)
		}
	}
	err := fmt.Errorf("turn: %w", &providers.Error{Kind: providers.Network, Err: io.ErrUnexpectedEOF})
	var e *providers.Error
	if !errors.Is(err, io.ErrUnexpectedEOF) || !errors.As(err, &e) || e.Kind != providers.Network {
		t.Errorf("%v does not unwrap", err)
	}
}

func TestUsageAdd(t *testing.T) {
	a := providers.Usage{Known: true, Input: 1, Cached: 2, Output: 3, Reasoning: 4}
	for _, v := range []struct{ a, b, want providers.Usage }{
		{a, a, providers.Usage{Known: true, Input: 2, Cached: 4, Output: 6, Reasoning: 8}},
		{a, providers.Usage{}, a},
		{providers.Usage{}, a, a},
		{},
	} {
		if diff := cmp.Diff(v.want, v.a.Add(v.b)); diff != "" {
			t.Errorf("%+v + %+v (-want +got):\n%s", v.a, v.b, diff)
		}
	}
}

// A message is encoded once for a wire form, again for another one, and not at
// all kept when that fails.
func TestMessageIsEncodedOnce(t *testing.T) {
	var n atomic.Int32
	m := &providers.Message{Role: providers.User, Parts: []providers.Part{providers.Text{Text: "hi"}}}
	encode := func(key string) string {
		b, err := m.Encoded(key, func(got *providers.Message) ([]byte, error) {
			if got != m {
				t.Error("another message is encoded")
			}
			n.Add(1)
			return []byte(key), nil
		})
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	broken := errors.New("broken")
	if _, err := m.Encoded("a", func(*providers.Message) ([]byte, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	for _, key := range []string{"a", "a", "b", "b", "b"} {
		if got := encode(key); got != key {
			t.Errorf("%q for %q", got, key)
		}
	}
	if n.Load() != 2 {
		t.Errorf("encoded %d times for two forms", n.Load())
	}
	var wg sync.WaitGroup
	for _, key := range []string{"a", "b", "a", "b"} {
		wg.Go(func() {
			for range 100 {
				if got := encode(key); got != key {
					t.Errorf("%q for %q", got, key)
				}
			}
		})
	}
	wg.Wait()
}
