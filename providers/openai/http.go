package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/lakecode/lakecode/providers"
)

// redirect is a redirect that was refused: following it would carry the key and
// the conversation to an address that nobody configured.
type redirect struct {
	status int
	to     string
}

func (r *redirect) Error() string { return "redirect refused" }

func newHTTP() *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         dialer.DialContext,
			ForceAttemptHTTP2:   true,
			TLSHandshakeTimeout: 10 * time.Second,
			MaxIdleConnsPerHost: 4,
			IdleConnTimeout:     90 * time.Second,
			WriteBufferSize:     64 << 10,
			ReadBufferSize:      16 << 10,
		},
		CheckRedirect: func(req *http.Request, _ []*http.Request) error {
			return &redirect{req.Response.StatusCode, bare(req.URL.String())}
		},
	}
}

// post sends body. The response is not nil when the server answered at all, an
// error status included; its body must be closed then.
func (c *Client) post(ctx context.Context, snap *providers.Snapshot, body []byte) (*http.Response, error) {
	var res *http.Response
	opts := []option.RequestOption{
		option.WithBaseURL(snap.BaseURL),
		option.WithHTTPClient(c.http),
		option.WithMaxRetries(0),
		option.WithMiddleware(boundErrors),
		option.WithHeader("Accept", "text/event-stream"),
		option.WithHeader("User-Agent", c.cfg.UserAgent),
	}
	for _, h := range stainless {
		opts = append(opts, option.WithHeaderDel(h))
	}
	if !snap.Key.IsZero() {
		opts = append(opts, option.WithAPIKey(snap.Key.Reveal()))
	}
	// A literal, because NewClient takes keys and addresses from the environment.
	client := openai.Client{Options: opts}
	err := client.Post(ctx, "chat/completions", body, &res)
	return res, err
}

// stainless are headers by which the vendor's module describes this machine.
var stainless = [...]string{
	"X-Stainless-Lang", "X-Stainless-Package-Version", "X-Stainless-OS", "X-Stainless-Arch",
	"X-Stainless-Runtime", "X-Stainless-Runtime-Version", "X-Stainless-Retry-Count", "X-Stainless-Timeout",
}

// boundErrors bounds what the vendor's module reads of an error answer.
func boundErrors(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	res, err := next(r)
	if res != nil && res.StatusCode >= 400 {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxErrorBytes), res.Body}
	}
	return res, err
}

// refused judges an answer whose status is no success.
func (a *attempt) refused(res *http.Response) *failure {
	if res.StatusCode < 400 {
		msg := fmt.Sprintf("the server answered %d without content", res.StatusCode)
		return a.fail(&wireError{kind: providers.BrokenStream, status: res.StatusCode, message: msg}, nil)
	}
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBytes))
	e := parseError(body)
	e.status = res.StatusCode
	f := a.fail(e, nil)
	if f.again {
		f.err.RetryAfter = retryAfter(res.Header, e.message)
	}
	return f
}

// unreached judges a request that got no answer.
func (a *attempt) unreached(err error) *failure {
	var to *redirect
	if errors.As(err, &to) {
		msg := fmt.Sprintf("the server redirects to %s; redirects are not followed, because they would carry the key there", to.to)
		f := a.fail(&wireError{kind: providers.Invalid, status: to.status, message: msg}, to)
		f.err.Next = fmt.Sprintf("If that address is right, make it BaseUrl of connection %q in providers.json.", a.snap.Provider)
		return f
	}
	host := "the server"
	if u, perr := url.Parse(a.snap.BaseURL); perr == nil && u.Host != "" {
		host = u.Host
	}
	f := a.fail(&wireError{kind: providers.Network, message: fmt.Sprintf("no answer from %s: %s", host, network(err))}, err)
	f.again = passing(err)
	return f
}

// network says what went wrong below HTTP, without addresses of ours.
func network(err error) string {
	var dns *net.DNSError
	var op *net.OpError
	var u *url.Error
	switch {
	case errors.As(err, &dns):
		return "the name " + dns.Name + " cannot be resolved"
	case errors.As(err, &op) && op.Err != nil:
		return op.Op + ": " + op.Err.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server closed the connection"
	case errors.As(err, &u):
		return u.Err.Error()
	case err == nil:
		return "no reason given"
	}
	return err.Error()
}
