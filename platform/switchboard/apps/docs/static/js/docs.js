// The pages of the documentation: one language for all samples, requests to try, and search.
import { prepareSamples } from "./samples.js";
import { prepareSearch } from "./search.js";
import { prepareTrials } from "./try.js";

prepareSamples();
prepareSearch();
prepareTrials();
document.querySelector(".sections [aria-current]")?.scrollIntoView({ block: "nearest" });
