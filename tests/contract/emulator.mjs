// Starts the GitHub server of `emulate`, says so, and ends when its input does.
import { createEmulator } from "emulate";

await createEmulator({ service: "github", ...JSON.parse(process.argv[2]) });
console.log("ready");
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
