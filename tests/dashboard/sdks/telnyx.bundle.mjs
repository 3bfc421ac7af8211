// Stand-in for Telnyx's WebRTC SDK: TelnyxRTC and Call by its documentation, as far as the dashboard uses it.
// The test acts as Telnyx: `dialed` returns the call's id, `hungUp` is called when the page is gone, and `ring` rings it.
function tone() {
  const context = new AudioContext();
  const out = context.createMediaStreamDestination();
  const oscillator = context.createOscillator();
  oscillator.connect(out);
  oscillator.start();
  return out.stream;
}

export class TelnyxRTC {
  listeners = [];

  constructor(options) {
    this.options = options;
  }

  on(name, listener) {
    this.listeners.push([name, listener]);
    return this;
  }

  emit(name, payload) {
    for (const [expected, listener] of this.listeners) if (expected === name) listener(payload);
  }

  connect() {
    const fault = globalThis.fault ?? (this.options.login_token.split(".").length === 3 ? null : "Login Incorrect");
    globalThis.ring = (from) => this.ring(from);
    queueMicrotask(() => (fault ? this.emit("telnyx.error", { error: new Error(fault) }) : this.emit("telnyx.ready")));
  }

  disconnect() {}

  ring(from) {
    if (!(this.remoteElement instanceof HTMLMediaElement)) throw new Error("nobody would be heard");
    const setState = (state) => {
      call.state = state;
      this.emit("telnyx.notification", { type: "callUpdate", call });
    };
    const call = {
      options: { remoteCallerNumber: from },
      localStream: tone(),
      remoteStream: tone(),
      muteAudio: () => globalThis.muted(true),
      unmuteAudio: () => globalThis.muted(false),
      dtmf() {},
      answer: () => setState("active"),
      async hangup() {
        if (call.state === "active") globalThis.hungUp();
        setState("hangup");
        setState("destroy");
      },
    };
    setState("ringing");
  }

  newCall({ destinationNumber, customHeaders, callerNumber, audio, remoteElement }) {
    const setState = (state) => {
      call.state = state;
      this.emit("telnyx.notification", { type: "callUpdate", call });
    };
    const call = {
      state: "new",
      localStream: tone(),
      remoteStream: tone(),
      telnyxIDs: {},
      muteAudio: () => globalThis.muted(true),
      unmuteAudio: () => globalThis.muted(false),
      dtmf() {},
      async hangup() {
        globalThis.hungUp();
        setState("hangup");
        setState("destroy");
      },
    };
    if (!audio || !(remoteElement instanceof HTMLMediaElement)) throw new Error("nobody would be heard");
    const headers = Object.fromEntries(customHeaders.map(({ name, value }) => [name, value]));
    globalThis.dialed({ destinationNumber, callerNumber, headers }).then((id) => {
      call.telnyxIDs = { telnyxCallControlId: id };
      // The connection breaks and comes back, in which the client is ready again.
      this.emit("telnyx.ready");
      setState("active");
    });
    setState("requesting");
    return call;
  }
}
