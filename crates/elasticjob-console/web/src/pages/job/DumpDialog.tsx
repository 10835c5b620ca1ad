import { Button, CopyButton, Group, Modal, ScrollArea } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import { request } from "../../api/client";
import { jobPath } from "../../api/queries";
import { useRegistry } from "../../app/registry";
import { ErrorState, Loading } from "../../components/states";
import { useText } from "../../i18n";

/** All registry nodes of a job, in the format of Java ElasticJob's dump. */
export function DumpDialog({ job, onClose }: { job: string; onClose: () => void }) {
  const t = useText();
  const registry = useRegistry();
  const dump = useQuery({
    queryKey: ["dump", registry, job],
    queryFn: () => request<string>("GET", `${jobPath(registry, job)}/dump`),
    gcTime: 0,
  });
  return (
    <Modal
      opened
      size="xl"
      onClose={onClose}
      title={t.job.dumpTitle(job)}
      closeButtonProps={{ "aria-label": t.close }}
    >
      {dump.isPending && <Loading />}
      {dump.isError && dump.data === undefined && <ErrorState error={dump.error} />}
      {dump.data !== undefined && (
        <>
          <ScrollArea.Autosize mah="60vh" viewportProps={{ tabIndex: 0 }}>
            <pre className="mono" style={{ margin: 0, fontSize: 12 }}>
              {dump.data}
            </pre>
          </ScrollArea.Autosize>
          <Group justify="flex-end" mt="sm">
            <CopyButton value={dump.data}>
              {({ copied, copy }) => (
                <Button variant="default" onClick={copy}>
                  {copied ? t.copied : t.copy}
                </Button>
              )}
            </CopyButton>
          </Group>
        </>
      )}
    </Modal>
  );
}
