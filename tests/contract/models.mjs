// Starts the model server of aimock with the answers that it is given, says so, and ends when its input does.
// An answer is for requests whose last message holds its text; `tool` is called by models that are given one, which
// answer `tooled` where that is there.
import { LLMock } from "@copilotkit/aimock";

const { port, answers } = JSON.parse(process.argv[2]);
const server = new LLMock({ port, logLevel: "silent", journalMaxEntries: 1 });
const words = (request) => {
  const content = request.messages.at(-1)?.content ?? "";
  return typeof content === "string" ? content : content.map((part) => part.text ?? "").join("");
};
for (const { holding, tool, tooled, plain } of answers) {
  const holds = (request) => words(request).includes(holding);
  const given = (request) => holds(request) && (request.tools ?? []).length > 0;
  if (tool !== undefined) {
    server.addFixture({
      match: { predicate: given },
      response: {
        toolCalls: [{ name: "give_verdict", arguments: JSON.stringify(tool) }],
        usage: { input_tokens: 41, output_tokens: 7 },
      },
    });
  }
  if (tooled !== undefined) server.addFixture({ match: { predicate: given }, response: tooled });
  server.addFixture({ match: { predicate: holds }, response: plain });
}
await server.start();
console.log("ready");
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
