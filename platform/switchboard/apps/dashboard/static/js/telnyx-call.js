// Calls, and waits for calls, over Telnyx's WebRTC SDK 2 (@telnyx/webrtc, lib/bundle.mjs): https://developers.telnyx.com/development/webrtc/js-sdk
import { askForMicrophone, reportStates, watchStreams } from "./sdk-call.js";

const NUMBER = /^\+\d+$/;
const PLACEHOLDER_TARGET = "sip:agent@sip.telnyx.com";

/**
 * Start a call in a click handler, like `startCall` of browser-call.js.
 * @param {import("./browser-call.js").Options & {sdk: string}} options  `sdk` is the address of Telnyx's file.
 * @returns {Promise<import("./browser-call.js").BrowserCall>}
 */
export async function startCall(options) {
  const { sdk, token, toNumber, fromNumber } = options;
  const client = await openClient(sdk, token);
  const states = reportStates(options);
  const remoteElement = createSpeaker();
  let message = null;

  client.on("telnyx.notification", ({ type, call, error }) => {
    if (type === "userMediaError") message = `Telnyx: ${error.message}`;
    if (type !== "callUpdate") return;
    if (call.state === "active") states.connected(call.telnyxIDs.telnyxCallControlId, call.localStream, call.remoteStream);
    if (call.state === "hangup") states.ended(message);
    // Disconnecting earlier would lose the hangup.
    if (call.state === "destroy") client.disconnect();
  });
  // The event repeats after each reconnection, which must not dial again: a promise resolves once.
  const signedIn = new Promise((resolve, reject) => {
    client.on("telnyx.ready", resolve);
    client.on("telnyx.error", ({ error }) => {
      message = `Telnyx: ${error.message}`;
      reject(new Error(message));
    });
  });
  client.connect();
  await signedIn.catch((error) => {
    client.disconnect();
    throw error;
  });

  // Telnyx accepts numbers and SIP addresses. The header names any other target; plugins/telephony_telnyx reads it.
  const call = client.newCall({
    destinationNumber: NUMBER.test(toNumber) ? toNumber : PLACEHOLDER_TARGET,
    customHeaders: [{ name: "X-Switchboard-To", value: toNumber }],
    ...(fromNumber ? { callerNumber: fromNumber } : {}),
    audio: true,
    remoteElement,
  });
  states.ringing();
  return { hangUp: () => call.hangup(), press: (digit) => call.dtmf(digit), mute: (muted) => (muted ? call.muteAudio() : call.unmuteAudio()) };
}

/**
 * Wait for one call, like `waitForCall` of browser-call.js.
 * @returns {Promise<import("./browser-call.js").IncomingLine>}
 */
export async function waitForCall({ sdk, token, onLevel = () => {}, onState = () => {} }) {
  const client = await openClient(sdk, token);
  client.remoteElement = createSpeaker();
  let call = null;
  let isConnected = false;
  let message = null;
  let stopWatching = () => {};
  const end = () => {
    stopWatching();
    client.disconnect();
    onState("ended", message);
    onState = () => {};
  };
  const handlers = {
    ringing: () => onState("ringing", call.options.remoteCallerNumber),
    active() {
      if (isConnected) return;
      isConnected = true;
      stopWatching = watchStreams({ you: call.localStream, agent: call.remoteStream }, onLevel);
      onState("connected", null);
    },
    // Disconnecting earlier would lose the hangup.
    destroy() {
      call = null;
      if (isConnected) end();
      else onState("waiting", null);
    },
  };

  client.on("telnyx.ready", () => call ?? onState("waiting", null));
  client.on("telnyx.error", ({ error }) => {
    message = `Telnyx: ${error.message}`;
    if (!call) end();
  });
  client.on("telnyx.notification", ({ type, call: changed, error }) => {
    if (type === "userMediaError") message = `Telnyx: ${error.message}`;
    if (type !== "callUpdate" || (call && call !== changed)) return;
    call = changed;
    handlers[call.state]?.();
  });
  client.connect();
  return {
    answer: async () => call?.answer(),
    decline: () => call?.hangup(),
    hangUp: () => call?.hangup(),
    press: (digit) => call?.dtmf(digit),
    mute: (muted) => (muted ? call?.muteAudio() : call?.unmuteAudio()),
    close: end,
  };
}

async function openClient(sdk, token) {
  await askForMicrophone();
  const { TelnyxRTC } = await import(sdk);
  return new TelnyxRTC({ login_token: token, enableCallReports: false });
}

function createSpeaker() {
  const speaker = new Audio();
  speaker.autoplay = true;
  return speaker;
}
