// Stands for Telnyx's WebRTC SDK: what its documentation says of TelnyxRTC and Call, as far as the talk page uses it.
// The test is Telnyx: `dialled` answers the call's id, `hungUp` hears that the page is gone.
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

  emit(name, told) {
    for (const [wanted, listener] of this.listeners) if (wanted === name) listener(told);
  }

  connect() {
    const fault = globalThis.fault ?? (this.options.login_token.split(".").length === 3 ? null : "Login Incorrect");
    queueMicrotask(() => (fault ? this.emit("telnyx.error", { error: new Error(fault) }) : this.emit("telnyx.ready")));
  }

  disconnect() {}

  newCall({ destinationNumber, customHeaders, callerNumber, audio, remoteElement }) {
    const become = (state) => {
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
        become("hangup");
        become("destroy");
      },
    };
    if (!audio || !(remoteElement instanceof HTMLMediaElement)) throw new Error("nobody would be heard");
    const headers = Object.fromEntries(customHeaders.map(({ name, value }) => [name, value]));
    globalThis.dialled({ destinationNumber, callerNumber, headers }).then((id) => {
      call.telnyxIDs = { telnyxCallControlId: id };
      // The connection breaks and comes back, in which the client is ready again.
      this.emit("telnyx.ready");
      become("active");
    });
    become("requesting");
    return call;
  }
}
