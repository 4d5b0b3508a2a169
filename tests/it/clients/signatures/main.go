package main

import (
	"encoding/json"
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
	hub := VerifyHubSignature(body, given.Headers["x-hub-signature"], given.Secret)
	webhook := VerifyWebhook(body, given.Headers, given.Secret)
	json.NewEncoder(os.Stdout).Encode([]bool{hub, webhook})
}
