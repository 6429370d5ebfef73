{{- define "memgraph.name" -}}
{{- if contains "memgraph" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-memgraph{{ end -}}
{{- end }}

{{- define "memgraph.selector" -}}
app.kubernetes.io/name: memgraph
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "memgraph.labels" -}}
{{ include "memgraph.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "memgraph.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* The names that requests may come under, parted by colons. */}}
{{- define "memgraph.hosts" -}}
{{- $name := include "memgraph.name" . }}
{{- $hosts := list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) }}
{{- if .Values.ingress.enabled }}{{ $hosts = append $hosts .Values.ingress.host }}{{ end }}
{{- concat $hosts .Values.allowedHosts | uniq | join ":" -}}
{{- end }}

{{- define "memgraph.env" -}}
- {name: MEMGRAPH_ROOT, value: /var/lib/memgraph/root}
- {name: MEMGRAPH_MEMORY__SERVER__ALLOWED_HOSTS, value: {{ include "memgraph.hosts" . | quote }}}
{{- range $name, $value := .Values.env }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end }}

{{- define "memgraph.mounts" -}}
- {name: memory, mountPath: /var/lib/memgraph}
- {name: tmp, mountPath: /tmp}
{{- range $place, $file := .Values.secretFiles }}
- {name: secret-{{ $place }}, mountPath: {{ $file.mountPath | quote }}, readOnly: true}
{{- end }}
{{- end }}

{{- define "memgraph.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
