{{- define "throughline.name" -}}
{{- printf "%s-throughline" .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "throughline.labels" -}}
app.kubernetes.io/name: throughline
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
