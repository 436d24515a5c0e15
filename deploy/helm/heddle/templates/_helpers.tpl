{{- define "heddle.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "heddle.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "heddle.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "heddle.labels" -}}
{{ include "heddle.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "heddle.tokenSecret" -}}
{{ .Values.auth.existingSecret | default (printf "%s-token" (include "heddle.fullname" .)) }}
{{- end }}

{{- define "heddle.tlsSecret" -}}
{{ .Values.tls.existingSecret | default (printf "%s-tls" (include "heddle.fullname" .)) }}
{{- end }}

{{- define "heddle.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "heddle.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* Heddle takes a token from a file that its group cannot write: files of a Secret are links of root's. */}}
{{- define "heddle.secrets" -}}
- name: secrets
  image: {{ include "heddle.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  command: [sh, -c, "umask 077 && cp /token/* /tls/* /run/heddle/"]
  securityContext:
    {{- include "heddle.containerSecurity" . | nindent 4 }}
  resources:
    requests: {cpu: 10m, memory: 16Mi}
    limits: {memory: 64Mi}
  volumeMounts:
    - {name: token, mountPath: /token, readOnly: true}
    - {name: tls, mountPath: /tls, readOnly: true}
    - {name: run, mountPath: /run/heddle}
{{- end }}

{{/* What pods of master and workers have alike; the secrets of each stand beside its pod. */}}
{{- define "heddle.volumes" -}}
- name: run
  emptyDir: {medium: Memory, sizeLimit: 1Mi}
- name: tmp
  emptyDir: {}
- name: data
  {{- if .Values.data.existingClaim }}
  persistentVolumeClaim: {claimName: {{ .Values.data.existingClaim }}}
  {{- else }}
  emptyDir: {}
  {{- end }}
{{- end }}
