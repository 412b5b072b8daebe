{{/* What all names begin with. With the rest they have 63 characters at most. */}}
{{- define "plimsoll.name" -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{/* The secret with the token. */}}
{{- define "plimsoll.tokenSecret" -}}
{{ .Values.tokenSecret | default (printf "%s-token-%d" (include "plimsoll.name" .) .Release.Revision) }}
{{- end }}

{{/* What targets.yaml says of the target; nothing for a URL. */}}
{{- define "plimsoll.target" -}}
{{- if .Values.target.name -}}
{{ index (.Files.Get "targets.yaml" | fromYaml) .Values.target.name | toYaml }}
{{- else -}}
{}
{{- end }}
{{- end }}
