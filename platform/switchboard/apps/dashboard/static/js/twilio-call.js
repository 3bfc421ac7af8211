// Calls, and waits for calls, over Twilio's Voice SDK 2 (@twilio/voice-sdk, dist/twilio.min.js): https://www.twilio.com/docs/voice/sdks/javascript
import { askForMicrophone, reportStates, watchStreams } from "./sdk-call.js";

const SILENCE = new URL("../sounds/silence.wav", import.meta.url).href;
const SOUNDS = ["incoming", "outgoing", "disconnect", ..."0123456789sh".split("").map((key) => `dtmf${key}`)];

/**
 * Start a call in a click handler, like `startCall` of browser-call.js.
 * @param {import("./browser-call.js").Options & {sdk: string}} options  `sdk` is the address of Twilio's file.
 * @returns {Promise<import("./browser-call.js").BrowserCall>}
 */
export async function startCall(options) {
  const { sdk, token, toNumber, fromNumber } = options;
  const device = await openDevice(sdk, token);
  const states = reportStates(options);
  let message = null;
  const end = () => states.ended(message) && device.destroy();
  const recordFailure = (error) => (message = `Twilio: ${error.message}`);

  // The device retries forever, so the first error before a call exists ends the attempt.
  const refused = new Promise((_, reject) => device.on("error", (error) => reject(new Error(recordFailure(error)))));
  // Twilio posts these parameters to the application; plugins/telephony_twilio reads both.
  const dialing = device.connect({ params: { To: toNumber, ...(fromNumber ? { CallerId: fromNumber } : {}) } });
  const call = await Promise.race([dialing, refused]).catch((error) => {
    device.destroy();
    throw error;
  });
  states.ringing();
  call.on("accept", () => states.connected(call.parameters.CallSid, call.getLocalStream(), call.getRemoteStream()));
  call.on("error", recordFailure);
  for (const event of ["disconnect", "cancel", "reject"]) call.on(event, end);
  return { hangUp: () => call.disconnect(), press: (digit) => call.sendDigits(digit), mute: (muted) => call.mute(muted) };
}

/**
 * Wait for one call, like `waitForCall` of browser-call.js.
 * @returns {Promise<import("./browser-call.js").IncomingLine>}
 */
export async function waitForCall({ sdk, token, onLevel = () => {}, onState = () => {} }) {
  const device = await openDevice(sdk, token);
  let call = null;
  let message = null;
  let stopWatching = () => {};
  const end = () => {
    stopWatching();
    device.destroy();
    onState("ended", message);
    onState = () => {};
  };
  const takeLeave = () => {
    call = null;
    onState("waiting", null);
  };

  device.on("registered", () => call ?? onState("waiting", null));
  device.on("error", (error) => {
    message = `Twilio: ${error.message}`;
    if (!call) end();
  });
  device.on("incoming", (incoming) => {
    if (call) return incoming.ignore();
    call = incoming;
    call.on("accept", () => {
      stopWatching = watchStreams({ you: call.getLocalStream(), agent: call.getRemoteStream() }, onLevel);
      onState("connected", null);
    });
    for (const event of ["cancel", "reject"]) call.on(event, takeLeave);
    call.on("disconnect", end);
    onState("ringing", call.parameters.From);
  });
  await device.register();
  return {
    answer: async () => call?.accept(),
    decline: () => call?.reject(),
    hangUp: () => call?.disconnect(),
    press: (digit) => call?.sendDigits(digit),
    mute: (muted) => call?.mute(muted),
    close: end,
  };
}

async function openDevice(sdk, token) {
  await askForMicrophone();
  await import(sdk);
  // The SDK would load its own tones from Twilio's host.
  return new globalThis.Twilio.Device(token, { sounds: Object.fromEntries(SOUNDS.map((name) => [name, SILENCE])) });
}
