/** Sends alerts to a webhook of Discord, as an embed that mentions nobody: https://discord.com/developers/docs/resources/webhook#execute-webhook. */
import type { DestinationTools, OpenDestination } from './destination.ts';
import { checkStatus, cut, linesOf, linkOf, titleOf, wordOf } from './text.ts';

/** Maximum number of characters of an embed's title and description. */
const maxTitle = 256;
const maxDescription = 4_096;

/** Opens a webhook of a channel. */
export function openDiscord(url: string, { http, url: base }: DestinationTools): OpenDestination {
  return {
    async send(message, { timeout, signal }) {
      const lines = linesOf(message, (item) => {
        const link = linkOf(item, base);
        return `**${wordOf(item)}** ${plain(cut(item.text, 180))}${link === undefined ? '' : ` <${link}>`}`;
      });
      const json = {
        embeds: [
          { title: cut(titleOf(message), maxTitle), description: cut(lines.join('\n'), maxDescription) },
        ],
        allowed_mentions: { parse: [] },
      };
      const { status } = await http.ask({ url, json, timeout, limit: 64 * 1024, signal });
      checkStatus(status);
    },
  };
}

/** Escapes what Markdown would read. */
function plain(text: string): string {
  return text.replaceAll(/[\\*_~`|<>[\]()#]/g, (character) => `\\${character}`);
}
