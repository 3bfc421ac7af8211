{{- define "switchboard.labels" -}}
app.kubernetes.io/name: switchboard
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- /* How fast the number of pods of one role may change. */ -}}
{{- define "switchboard.scalingBehavior" -}}
{{- $scaling := (index .root.Values .component).autoscaling -}}
scaleUp:
  stabilizationWindowSeconds: {{ eq .component "serve" | ternary 0 60 }}
  policies:
    - type: Percent
      value: 100
      periodSeconds: 60
scaleDown:
  stabilizationWindowSeconds: {{ $scaling.scaleDownStabilizationSeconds }}
  policies:
    - type: Pods
      value: 1
      periodSeconds: {{ $scaling.scaleDownPeriodSeconds }}
{{- end }}

{{- /* Pod of one role: `component` is the argument of the image. */ -}}
{{- define "switchboard.pod" -}}
# A Service called "switchboard" would put SWITCHBOARD_PORT=tcp://… into the environment.
enableServiceLinks: false
automountServiceAccountToken: false
terminationGracePeriodSeconds: {{ .root.Values.terminationGracePeriodSeconds }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
containers:
  - name: {{ .component }}
    image: "{{ .root.Values.image.repository }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}"
    imagePullPolicy: {{ .root.Values.image.pullPolicy }}
    args: [{{ .component }}]
    env:
      {{- range $name, $value := .root.Values.settings }}
      - name: {{ $name }}
        value: {{ $value | quote }}
      {{- end }}
      {{- if and (eq .component "serve") .root.Values.serve.mediaUrl }}
      {{- range $name, $path := dict "POD_NAME" "metadata.name" "POD_IP" "status.podIP" "NODE_NAME" "spec.nodeName" }}
      - name: {{ $name }}
        valueFrom:
          fieldRef:
            fieldPath: {{ $path }}
      {{- end }}
      - name: SWITCHBOARD_MEDIA_URL
        value: {{ .root.Values.serve.mediaUrl | quote }}
      {{- end }}
    envFrom:
      - secretRef:
          name: {{ .root.Values.secretName }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities:
        drop: [ALL]
    {{- if ne .component "migrate" }}
    ports:
      - name: http
        containerPort: 8080
    startupProbe:
      httpGet: {path: /healthz, port: http}
      periodSeconds: 2
      failureThreshold: 60
    livenessProbe:
      httpGet: {path: /healthz, port: http}
      periodSeconds: 10
      timeoutSeconds: 5
      failureThreshold: 6
    readinessProbe:
      httpGet: {path: /readyz, port: http}
      periodSeconds: 1
      timeoutSeconds: 5
      failureThreshold: 1
    resources:
      {{- toYaml (index .root.Values .component).resources | nindent 6 }}
    {{- end }}
    volumeMounts:
      - name: data
        mountPath: /var/lib/switchboard
      - name: tmp
        mountPath: /tmp
      {{- if .root.Values.tenantsConfigMap }}
      - name: tenants
        mountPath: /etc/switchboard/tenants
      {{- end }}
volumes:
  - name: data
    {{- if eq .component "migrate" }}
    emptyDir: {}
    {{- else }}
    persistentVolumeClaim:
      claimName: {{ .root.Release.Name }}-data
    {{- end }}
  - name: tmp
    emptyDir: {}
  {{- if .root.Values.tenantsConfigMap }}
  - name: tenants
    configMap:
      name: {{ .root.Values.tenantsConfigMap }}
  {{- end }}
{{- end }}
