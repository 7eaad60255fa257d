// quic-go as a peer of the example `http3` of glommio-h3: `serve` or `ask`.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quic-go/quic-go/http3"
)

const length = 5_000_000

func pattern(length int) []byte {
	all := make([]byte, length)
	for index := range all {
		all[index] = byte(index*31 + index/251)
	}
	return all
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "quic-go:", err)
		os.Exit(1)
	}
}

func told(what string, isRight bool) {
	if !isRight {
		check(fmt.Errorf("wrong: %s", what))
	}
	fmt.Println("  ok:", what)
}

func serve(address, certificate, key string) {
	mux := http.NewServeMux()
	mux.HandleFunc("/bytes/", func(out http.ResponseWriter, in *http.Request) {
		count, err := strconv.Atoi(strings.TrimPrefix(in.URL.Path, "/bytes/"))
		if err != nil {
			http.NotFound(out, in)
			return
		}
		out.Write(pattern(count))
	})
	mux.HandleFunc("/echo", func(out http.ResponseWriter, in *http.Request) { io.Copy(out, in.Body) })
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, in *http.Request) { <-in.Context().Done() })
	check(http3.ListenAndServeQUIC(address, certificate, key, mux))
}

func ask(address, authority string) {
	pem, err := os.ReadFile(authority)
	check(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	transport := &http3.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "localhost"}}
	defer transport.Close()
	client := &http.Client{Transport: transport}
	send := func(ctx context.Context, method, path string, body []byte) ([]byte, error) {
		request, err := http.NewRequestWithContext(ctx, method, "https://"+address+path, bytes.NewReader(body))
		check(err)
		response, err := client.Do(request)
		if err != nil {
			return nil, err
		}
		defer response.Body.Close()
		return io.ReadAll(response.Body)
	}
	get := func(path string) []byte {
		read, err := send(context.Background(), "GET", path, nil)
		check(err)
		return read
	}

	told("5 MB", bytes.Equal(get(fmt.Sprintf("/bytes/%d", length)), pattern(length)))
	read, err := send(context.Background(), "POST", "/echo", pattern(length))
	check(err)
	told("5 MB by POST, and back", bytes.Equal(read, pattern(length)))
	var all sync.WaitGroup
	right := make([]bool, 200)
	for number := range right {
		all.Go(func() {
			count := 1000 + number
			right[number] = bytes.Equal(get(fmt.Sprintf("/bytes/%d", count)), pattern(count))
		})
	}
	all.Wait()
	for _, isRight := range right {
		if !isRight {
			told("200 requests at a time", false)
		}
	}
	told("200 requests at a time", true)
	before, err := strconv.Atoi(string(get("/cancelled")))
	check(err)
	for range 10 {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		_, err := send(ctx, "GET", "/slow", nil)
		cancel()
		told("a response that does not come", err != nil)
	}
	for range 1000 {
		if count, _ := strconv.Atoi(string(get("/cancelled"))); count == before+10 {
			told("ten cancelled requests", true)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	told("ten cancelled requests", false)
}

func main() {
	switch {
	case len(os.Args) == 5 && os.Args[1] == "serve":
		serve(os.Args[2], os.Args[3], os.Args[4])
	case len(os.Args) == 4 && os.Args[1] == "ask":
		ask(os.Args[2], os.Args[3])
	default:
		check(fmt.Errorf("serve ADDRESS CERTIFICATE KEY, or ask ADDRESS AUTHORITY"))
	}
}
