-- reads: workers, samples
-- Each worker that one cluster had: last values, greatest memory, mean CPU; `gone` if the newest message lacks it, but
-- for messages that tell of no worker although there are some.
WITH newest AS (
    SELECT max((boot, seq)) AS message
    FROM samples
    WHERE cluster = $cluster AND (n_workers = 0 OR worker_loop_ms IS NOT NULL OR self_detail IS NULL)
)
SELECT
    address,
    arg_max(name, (boot, seq)) AS name,
    arg_max(status, (boot, seq)) AS status,
    max((boot, seq)) < (SELECT message FROM newest) AS gone,
    min("at") AS first_at,
    max("at") AS last_at,
    arg_max(n_threads, (boot, seq)) AS n_threads,
    capped(arg_max(memory_mib, (boot, seq))::HUGEINT * 1048576) AS memory_bytes,
    capped(arg_max(memory_limit_mib, (boot, seq))::HUGEINT * 1048576) AS memory_limit_bytes,
    capped(max(memory_mib)::HUGEINT * 1048576) AS peak_memory_bytes,
    capped(arg_max(managed_mib, (boot, seq))::HUGEINT * 1048576) AS managed_bytes,
    capped(arg_max(spilled_mib, (boot, seq))::HUGEINT * 1048576) AS spilled_bytes,
    arg_max(cpu_pct, (boot, seq)) AS cpu_pct,
    avg(cpu_pct) AS mean_cpu_pct,
    arg_max(executing, (boot, seq)) AS executing,
    arg_max(ready, (boot, seq)) AS ready,
    arg_max(in_memory, (boot, seq)) AS in_memory,
    capped(arg_max(net_read_kib_s, (boot, seq))::HUGEINT * 1024) AS net_read_bytes_s,
    capped(arg_max(net_write_kib_s, (boot, seq))::HUGEINT * 1024) AS net_write_bytes_s,
    capped(arg_max(disk_read_kib_s, (boot, seq))::HUGEINT * 1024) AS disk_read_bytes_s,
    capped(arg_max(disk_write_kib_s, (boot, seq))::HUGEINT * 1024) AS disk_write_bytes_s,
    arg_max(loop_interval_ms, (boot, seq)) AS loop_interval_ms,
    arg_max(gpu_pct, (boot, seq)) AS gpu_pct,
    capped(arg_max(gpu_memory_mib, (boot, seq))::HUGEINT * 1048576) AS gpu_memory_bytes
FROM workers
WHERE cluster = $cluster
GROUP BY address
ORDER BY first_at, address
