import { Resources } from "./generated/resources.js";
import { Transport, type ClientOptions } from "./transport.js";

/** Client of one organization. */
export class Switchboard extends Resources {
  constructor(options: ClientOptions) {
    super(new Transport(options));
  }
}
