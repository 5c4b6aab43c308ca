package openai

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"time"
)

// retryAfter reads how long a server wants us to wait; 0 when it does not say.
// Both forms of RFC 9110 10.2.3 are understood, the millisecond header of some
// vendors, and as a last resort a delay that is only in the message.
func retryAfter(h http.Header, message string) time.Duration {
	if d := seconds(h.Get("Retry-After-Ms"), time.Millisecond); d > 0 {
		return d
	}
	v := h.Get("Retry-After")
	if d := seconds(v, time.Second); d > 0 {
		return d
	}
	if t, err := http.ParseTime(v); err == nil {
		return max(time.Until(t), 0)
	}
	if m := reDelay.FindStringSubmatch(message); m != nil {
		unit := time.Second
		if m[2] == "ms" {
			unit = time.Millisecond
		}
		return seconds(m[1], unit)
	}
	return 0
}

var reDelay = regexp.MustCompile(`(?i)(?:try again|retry) (?:in|after) (\d+(?:\.\d+)?) ?(ms|s\b|sec)`)

// seconds reads a number of units, at most a day.
func seconds(s string, unit time.Duration) time.Duration {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || !(f > 0) {
		return 0
	}
	const day = 24 * time.Hour
	if f >= float64(day/unit) {
		return day
	}
	return time.Duration(f * float64(unit))
}

// backoff returns how long to wait before attempt n, from 2: doubling, with a
// quarter of jitter either way.
func backoff(n int) time.Duration {
	d := min(firstWait<<(n-2), maxWait)
	return d - d/4 + rand.N(d/2+1)
}

// sleep waits; it returns the cause when ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// passing reports whether a request that got no answer may succeed when it is
// sent again: the connection failed or broke, but not because the name does not
// exist.
func passing(err error) bool {
	var dns *net.DNSError
	if errors.As(err, &dns) && dns.IsNotFound {
		return false
	}
	var op *net.OpError
	return errors.As(err, &op) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
