package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"gonethttpvoice/internal/message"
)

const (
	// voicesKept is how long a list is answered from memory.
	voicesKept     = time.Minute
	voicesBytesMax = 4 << 20
)

// voice is one that a caller can choose.
type voice struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Language string `json:"language"`
	Gender   string `json:"gender"`
	Accent   string `json:"accent"`
	Sample   string `json:"sample"`
}

// voices is the list that was fetched last. The lock is held while one is fetched, so many who ask make one request.
type voices struct {
	mu      sync.Mutex
	list    []voice
	fetched time.Time
}

// listVoices is GET /voices. Of the providers only ElevenLabs has a request for its voices; the others' lists are empty.
func (g *Gateway) listVoices(w http.ResponseWriter, r *http.Request) {
	g.voices.mu.Lock()
	defer g.voices.mu.Unlock()
	if g.voices.fetched.IsZero() || time.Since(g.voices.fetched) >= voicesKept {
		// Not the request's own context: the list is for all who wait for it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), g.config.TTSFirst)
		defer cancel()
		list, err := g.fetchVoices(ctx)
		switch {
		case ctx.Err() != nil:
			refuse(w, http.StatusGatewayTimeout, "provider_timeout", "the provider did not list its voices")
			return
		case err != nil:
			refuse(w, http.StatusBadGateway, "provider_failed", err.Error())
			return
		}
		g.voices.list, g.voices.fetched = list, time.Now()
	}
	answer := map[string][]voice{}
	for _, provider := range message.TTSProviders {
		answer[provider] = []voice{}
	}
	answer["elevenlabs"] = g.voices.list
	reply(w, http.StatusOK, answer)
}

func (g *Gateway) fetchVoices(ctx context.Context) ([]voice, error) {
	address := g.provider().JoinPath("/v1/voices").String()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	if g.config.ProviderKey != "" {
		request.Header.Set("xi-api-key", g.config.ProviderKey)
	}
	response, err := g.tts.RoundTrip(request)
	if err != nil {
		return nil, errors.New("the provider's connection failed")
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the provider answered %d", response.StatusCode)
	}
	var told struct {
		Voices []struct {
			ID      string            `json:"voice_id"`
			Name    string            `json:"name"`
			Labels  map[string]string `json:"labels"`
			Preview string            `json:"preview_url"`
		} `json:"voices"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, voicesBytesMax)).Decode(&told); err != nil {
		return nil, errors.New("the provider's list of voices cannot be read")
	}
	list := []voice{}
	for _, v := range told.Voices {
		list = append(list, voice{v.ID, v.Name, v.Labels["language"], v.Labels["gender"], v.Labels["accent"], v.Preview})
	}
	return list, nil
}
