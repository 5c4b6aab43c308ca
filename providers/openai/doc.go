// Package openai speaks OpenAI's Chat Completions protocol, streaming, with any
// server that offers it: OpenAI itself, gateways, llama.cpp, vLLM, Ollama.
// [Client] implements providers.Client.
//
// The vendor's module encodes messages and carries the POST; reading the answer
// is our own, because servers deviate in ways that it loses without an error. A
// request is put together from encodings kept with each message, so that a long
// history is encoded once and its bytes are the same in every request.
//
// Invariants, as absences: nothing is read from the environment but the proxy
// settings; no redirect is followed; no key is in an error; nothing is sent
// again once a delta was yielded; a broken answer never yields providers.Done;
// memory taken by an answer is bounded whatever the server sends.
//
// Goroutines: none outlive an iteration of Stream, except those of net/http that
// hold idle connections, which [Client.Close] ends.
//
//	client := openai.New(openai.Config{})
//	defer client.Close()
//	for d, err := range client.Stream(ctx, snap, req) {
//		...
//	}
package openai
