-- reads: samples, samples_before, clusters, clusters_before, fine_metrics, fine_metrics_before
-- The roll-up of one day: each cluster heard of, and what the day added to its running totals.
WITH identities AS (
    SELECT cluster, arg_max(name, (boot, seq)) AS name, arg_max("user", (boot, seq)) AS "user"
    FROM (FROM clusters UNION ALL BY NAME FROM clusters_before)
    GROUP BY cluster
),
old AS (
    SELECT cluster, boot, max(seq) AS seq, max(thread_us) AS thread_us, arg_max(action_us, seq) AS action_us
    FROM samples_before
    GROUP BY cluster, boot
),
boots AS (
    SELECT
        s.cluster,
        s.boot,
        -- A newest message no newer than one of an earlier day came late and adds nothing.
        greatest(max(s.thread_us)::HUGEINT - coalesce(any_value(old.thread_us), 0), 0) AS thread_us,
        CASE WHEN any_value(old.seq) IS NULL OR max(s.seq) > any_value(old.seq) THEN arg_max(s.action_us, s.seq) END AS new_us,
        CASE WHEN max(s.seq) > any_value(old.seq) THEN any_value(old.action_us) END AS old_us
    FROM samples s
    LEFT JOIN old USING (cluster, boot)
    GROUP BY s.cluster, s.boot
),
actions AS (
    SELECT cluster, e.key AS action, capped(sum(sign::HUGEINT * e.value)) AS us
    FROM (
        SELECT cluster, 1 AS sign, unnest(map_entries(new_us)) AS e FROM boots
        UNION ALL
        SELECT cluster, -1, unnest(map_entries(old_us)) FROM boots
    )
    GROUP BY ALL
),
spent AS (
    SELECT cluster, map_from_entries(list((action, us) ORDER BY action) FILTER (us <> 0)) AS action_us
    FROM actions
    GROUP BY cluster
),
-- Worker time in tasks that failed or were cancelled as they ran, of clusters whose Dask tells it at all.
told AS (SELECT * FROM fine_metrics WHERE context = 'execute' AND unit = 'seconds'),
told_before AS (SELECT * FROM fine_metrics_before WHERE context = 'execute' AND unit = 'seconds'),
grown AS (
    SELECT t.cluster, greatest(finite(t.value) - coalesce(finite(b.value), 0), 0) AS s
    FROM told t
    LEFT JOIN told_before b ON b.cluster = t.cluster AND b.boot = t.boot AND b.prefix IS NOT DISTINCT FROM t.prefix
        AND b.span IS NOT DISTINCT FROM t.span AND b.activity = t.activity
    WHERE t.activity IN ('failed', 'cancelled') AND (b.seq IS NULL OR t.seq > b.seq)
),
failed AS (
    SELECT cluster, least(coalesce(sum(s), 0) * 1e6, 9e18)::BIGINT AS failed_us
    FROM (SELECT cluster FROM told UNION SELECT cluster FROM told_before)
    LEFT JOIN grown USING (cluster)
    GROUP BY cluster
),
offered AS (SELECT cluster, capped(sum(thread_us)) AS thread_us FROM boots GROUP BY cluster),
seen AS (
    SELECT
        cluster,
        max(cluster_id) AS cluster_id,
        min("at") AS first_at,
        max("at") AS last_at,
        max(n_workers)::BIGINT AS peak_workers,
        max(memory_bytes) AS peak_memory_bytes
    FROM samples
    GROUP BY cluster
)
SELECT
    $account AS account,
    $day::DATE AS day,
    seen.cluster,
    seen.cluster_id,
    identities.name,
    identities."user",
    seen.first_at,
    seen.last_at,
    seen.peak_workers,
    seen.peak_memory_bytes,
    offered.thread_us,
    coalesce(spent.action_us, MAP {}::MAP(VARCHAR, BIGINT)) AS action_us,
    failed.failed_us
FROM seen
JOIN offered USING (cluster)
LEFT JOIN identities USING (cluster)
LEFT JOIN spent USING (cluster)
LEFT JOIN failed USING (cluster)
ORDER BY seen.cluster
