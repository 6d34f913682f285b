-- reads: computations, groups, exceptions, catalog
-- A team's computations of the same code together, most worker time first; `user` narrows them,
-- `since` and `until` to those that began then. Those whose code nobody told are in none, nor are those that ended
-- without a task of their own. `frame` is the innermost one.
WITH mine AS (
    SELECT
        m.cluster,
        m.boot,
        m.no,
        fingerprint(m.code) AS fingerprint,
        m.start_at,
        CASE WHEN m.stop_at IS NOT NULL THEN greatest(epoch_ms(m.stop_at) - epoch_ms(m.start_at), 0) END AS duration_ms,
        m.code[1][-1] AS frame,
        c."user"
    FROM computations m
    LEFT JOIN catalog c USING (cluster)
    WHERE ($user::VARCHAR IS NULL OR c."user" = $user)
      AND ($since::TIMESTAMPTZ IS NULL OR m.start_at >= $since)
      AND ($until::TIMESTAMPTZ IS NULL OR m.start_at <= $until)
),
failed AS (SELECT DISTINCT cluster, boot, group_no AS no FROM exceptions WHERE group_no IS NOT NULL),
done AS (
    SELECT
        g.cluster,
        g.boot,
        g.computation AS no,
        sum(list_sum(map_values(g.action_us))) AS us,
        bool_or(f.no IS NOT NULL) AS is_failed
    FROM groups g
    LEFT JOIN failed f USING (cluster, boot, no)
    WHERE g.computation IS NOT NULL
    GROUP BY g.cluster, g.boot, g.computation
)
SELECT
    a.fingerprint,
    count(*) AS n,
    count(DISTINCT a.cluster) AS n_clusters,
    list(DISTINCT a."user" ORDER BY a."user") FILTER (a."user" IS NOT NULL) AS users,
    min(a.start_at) AS first_at,
    max(a.start_at) AS last_at,
    median(a.duration_ms) AS median_ms,
    quantile_cont(a.duration_ms, 0.95) AS p95_ms,
    count(*) FILTER (d.is_failed) AS n_failed,
    capped(coalesce(sum(greatest(d.us, 0)), 0)) AS us,
    arg_max(a.frame, (a.start_at, a.cluster, a.no)) AS frame
FROM mine a
LEFT JOIN done d USING (cluster, boot, no)
WHERE a.fingerprint IS NOT NULL AND (d.no IS NOT NULL OR a.duration_ms IS NULL)
GROUP BY a.fingerprint
ORDER BY us DESC, a.fingerprint
LIMIT $limit OFFSET $offset
