import { Text } from "@mantine/core";
import type { ReactNode } from "react";

import type { Instance } from "../api/types";
import { MessageText } from "./MessageText";

/** A server message in the user's language. If that differs from the server's English, the original follows, as it has the details. */
export function ServerMessage({
  text,
  message,
  known,
  prefix,
}: {
  text: string;
  message: string;
  known?: Instance[];
  prefix?: ReactNode;
}) {
  return (
    <>
      <Text size="sm" className="wrap" component="div">
        {prefix}
        {text === message ? <MessageText text={message} known={known} /> : text}
      </Text>
      {text !== message && (
        <Text size="xs" c="dimmed" className="wrap" component="div" lang="en">
          <MessageText text={message} known={known} />
        </Text>
      )}
    </>
  );
}
