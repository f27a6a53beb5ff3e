// Saves or restores an entry with the official client: node official_client.mjs save|restore PATH KEY
import { restoreCache, saveCache } from "@actions/cache";

const [what, path, key] = process.argv.slice(2);
if (what === "save") {
  console.log(`entry ${await saveCache([path], key)}`);
} else {
  console.log(`matched ${await restoreCache([path], key)}`);
}
