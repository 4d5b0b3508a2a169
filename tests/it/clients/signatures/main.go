package main

import (
	"encoding/json"
	"net/http"
	"os"
)

func main() {
	var given struct {
		Body, Secret string
		Headers      map[string]string
	}
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		panic(err)
	}
	body := []byte(given.Body)
	headers := http.Header{}
	for name, value := range given.Headers {
		headers.Set(name, value)
	}
	hub := VerifyHubSignature(body, headers.Get("x-hub-signature"), given.Secret)
	webhook := VerifyWebhook(body, headers, given.Secret)
	json.NewEncoder(os.Stdout).Encode([]bool{hub, webhook})
}
