import { Text } from "@mantine/core";
import type { ReactNode } from "react";

import type { Instance } from "../api/types";
import { Prose } from "./Prose";

/** What the server says, in the reader's words; where those are others, the server's own stand below: they know the details. */
export function Told({
  says,
  message,
  known,
  before,
}: {
  says: string;
  message: string;
  known?: Instance[];
  before?: ReactNode;
}) {
  return (
    <>
      <Text size="sm" className="wrap" component="div">
        {before}
        {says === message ? <Prose text={message} known={known} /> : says}
      </Text>
      {says !== message && (
        <Text size="xs" c="dimmed" className="wrap" component="div" lang="en">
          <Prose text={message} known={known} />
        </Text>
      )}
    </>
  );
}
