{{/* The Secret with the certificate of the page; empty when there is none, and the page listens on loopback. */}}
{{- define "kerf.uiCertSecret" -}}
{{- with .Values.ui }}
{{- if include "kerf.on" .certManager.enabled }}
{{- if not .certManager.issuerRef }}
{{- fail "ui.certManager.enabled: browsers and proxies must trust the issuer: set ui.certManager.issuerRef" }}
{{- end }}
{{- default (printf "%s-ui-cert" (include "kerf.fullname" $)) .certSecret }}
{{- else }}
{{- .certSecret }}
{{- end }}
{{- end }}
{{- end -}}
