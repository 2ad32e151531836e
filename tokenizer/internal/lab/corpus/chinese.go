package corpus

import "strings"

// Words of Chinese, the frequent ones first. Between them stands no space; a clause is one unbroken
// run of characters.
var (
	chineseNouns = newZipf(strings.Fields(`人 时间 问题 国家 工作 社会 经济 公司 情况 世界 学生 生活 政府 市场 企业 方面 技术 地方 发展 中国 老师 关系 系统 信息
		数据 研究 文化 历史 孩子 学校 城市 城市 结果 朋友 作用 条件 方法 原因 服务 产品 项目 管理 环境 教育 科学 网络 水平 过程 能力 思想 语言 手机 电脑
		模型 请求 用户 接口 服务器 缓存 密钥 预算 配额 令牌 消息 文本 内容 错误 日志 程序 代码 函数 变量 参数 文件 目录 数据库 线程 进程 内存 算法 协议
		银行 医院 医生 病人 父母 母亲 父亲 妻子 丈夫 女儿 儿子 邻居 客人 司机 警察 记者 作家 诗人 画家 音乐 电影 电视 报纸 杂志 小说 故事 新闻 广告
		春天 夏天 秋天 冬天 早晨 晚上 周末 昨天 明天 季节 天气 温度 阳光 雨水 森林 河流 海洋 山脉 沙漠 草原 村庄 街道 桥梁 车站 机场 铁路 飞机 火车
		汽车 自行车 厨房 客厅 窗户 桌子 椅子 灯光 钥匙 衣服 鞋子 帽子 茶叶 咖啡 米饭 面条 蔬菜 水果 苹果 牛奶 鸡蛋 豆腐 味道 颜色 声音 形状 速度
		价格 成本 利润 资金 投资 贸易 出口 合同 法律 政策 制度 权利 责任 义务 安全 风险 机会 挑战 目标 计划 战略 任务 会议 报告 文章 论文 实验 理论
		概念 原则 标准 质量 数量 比例 趋势 规律 现象 因素 特点 优势 缺点 经验 教训 知识 智慧 梦想 希望 勇气 耐心 信心 幸福 痛苦 记忆 传统 习惯 节日
		能源 电池 卫星 火箭 望远镜 显微镜 细胞 基因 疫苗 蛋白质 分子 原子 宇宙 星球 地震 洪水 污染 气候 物种 生态`))

	chineseVerbs = newZipf(strings.Fields(`是 有 说 要 看 做 可以 进行 使用 发现 知道 认为 需要 成为 提高 开始 解决 提供 研究 影响 建立 分析 学习 讨论 支持
		选择 改变 增加 减少 利用 了解 表示 要求 得到 考虑 决定 完成 参加 带来 出现 形成 介绍 帮助 保护 管理 检查 计算 测量 返回 发送 接收 处理 调用
		记录 读取 写入 删除 更新 限制 拒绝 允许 等待 重试 连接 断开 启动 停止 运行 测试 部署 配置 优化 设计 开发 维护 推动 促进 加强 扩大 控制 降低
		满足 适应 达到 超过 保持 反映 证明 解释 描述 比较 评价 观察 预测 估计 邀请 拜访 感谢 祝贺 批评 鼓励 安慰 忘记 想起 寻找 收集 整理 准备 购买
		出售 修理 打扫 种植 翻译 朗读 演奏 欣赏 拍摄 绘制 创造 发明 模仿 继承 传播 珍惜 浪费 承担 避免 克服 面对 征服 放弃 坚持 争取`))

	chineseAdjectives = newZipf(strings.Fields(`新 大 重要 好 主要 不同 小 高 长 许多 一定 复杂 简单 美丽 年轻 普通 特殊 具体 基本 巨大 明显 严重 稳定 可靠
		安静 热闹 古老 现代 温暖 寒冷 干净 聪明 勤劳 善良 骄傲 谦虚 忙碌 轻松 紧张 危险 方便 昂贵 便宜 新鲜 甜美 深刻 广泛 丰富 贫穷 富裕 遥远 陌生
		熟悉 神秘 透明 柔软 坚硬 锋利 粗糙 光滑 狭窄 宽阔`))

	chineseAdverbs = newZipf(strings.Fields(`不 也 就 都 还 已经 很 非常 一直 只 再 又 才 正在 可能 必须 应该 往往 终于 逐渐 突然 忽然 果然 仍然 几乎 大概
		似乎 究竟 毕竟 尤其 特别 十分 稍微 更加 不断 重新 立刻 马上 从来 偶尔`))

	chineseSubjects = newZipf(strings.Fields(`我们 他 我 她 他们 你 大家 这 那 有人 谁 自己 它 人们 您 别人 双方`))

	chineseJoins = []string{"，但是", "，因为", "，所以", "，而且", "，如果", "，虽然", "，并", "，从而", "；", "，", "，", "，", "，同时", "，于是", "，不过"}

	chinesePlaces = newZipf(strings.Fields(`北京 上海 广州 深圳 杭州 成都 南京 西安 武汉 重庆 苏州 昆明 拉萨 香港 台北 东京 伦敦 巴黎 纽约 莫斯科`))

	chineseMeasures = []string{"个", "种", "位", "件", "条", "次", "家", "本", "张", "年", "元", "公里", "小时"}

	chineseForeign = []string{"API", "JSON", "Go", "Redis", "GPT-4o", "HTTP", "CPU", "token", "Wasm", "v1.2"}
)

func chineseNounPhrase(b []byte, r *Rand) []byte {
	switch r.Intn(14) {
	case 0:
		b = appendInt(b, 1+r.Intn(2000))
		b = append(b, pickOf(r, chineseMeasures...)...)
	case 1:
		b = append(b, pickOf(r, "一", "两", "三", "几", "每", "这", "那")+pickOf(r, chineseMeasures[:8]...)...)
	case 2, 3:
		b = append(b, chineseAdjectives.pick(r)+"的"...)
	case 4:
		b = append(b, chineseNouns.pick(r)+"的"...)
	case 5:
		b = append(b, chinesePlaces.pick(r)+"的"...)
	case 6:
		return append(b, pickOf(r, chineseForeign...)...)
	case 7:
		b = append(b, chineseNouns.pick(r)...)
	}
	return append(b, chineseNouns.pick(r)...)
}

func chineseClause(b []byte, r *Rand) []byte {
	if r.Chance(6) {
		b = append(b, "在"+chinesePlaces.pick(r)+pickOf(r, "，", "", "")...)
	}
	if r.Chance(2) {
		b = append(b, chineseSubjects.pick(r)...)
	} else {
		b = chineseNounPhrase(b, r)
	}
	if r.Chance(2) {
		b = append(b, chineseAdverbs.pick(r)...)
	}
	switch r.Intn(8) {
	case 0:
		return append(b, "很"+chineseAdjectives.pick(r)...)
	case 1:
		b = append(b, "把"...)
		b = chineseNounPhrase(b, r)
		return append(b, chineseVerbs.pick(r)+"了"...)
	case 2:
		b = append(b, "被"...)
		b = chineseNounPhrase(b, r)
		return append(b, chineseVerbs.pick(r)+"了"...)
	}
	b = append(b, chineseVerbs.pick(r)+pickOf(r, "", "", "了", "过", "着")...)
	b = chineseNounPhrase(b, r)
	if r.Chance(7) {
		b = append(b, "、"...)
		b = chineseNounPhrase(b, r)
		b = append(b, "和"...)
		b = chineseNounPhrase(b, r)
	}
	return b
}

var chineseOpeners = []string{"但是", "因此", "例如", "同时", "首先", "其次", "最后", "当然", "此外", "总之", "一般来说", "换句话说", "在这种情况下", "另一方面"}

// chineseSentence is made so that its runs between punctuation are much as in documentation. There
// (the Chinese manuals of GNOME and Debian) a run has 7.8 characters in the mean, here 6.4; of 13,000
// runs seven in ten are different ones in both.
func chineseSentence(b []byte, r *Rand) []byte {
	quoted := r.Chance(12)
	if quoted {
		b = append(b, chineseSubjects.pick(r)+"说：“"...)
	}
	if r.Chance(3) {
		b = append(b, pickOf(r, chineseOpeners...)+"，"...)
	}
	if r.Chance(12) { // what is listed stands in short runs of its own
		for range 1 + r.Intn(3) {
			b = append(b, chineseNouns.pick(r)+"、"...)
		}
		b = append(b, chineseNouns.pick(r)+"，"...)
	}
	b = chineseClause(b, r)
	if r.Chance(8) {
		b = append(b, " "+capital(englishNouns.pick(r))+" "...)
		b = appendInt(b, r.Intn(2030))
		b = append(b, chineseNouns.pick(r)...)
	}
	for r.Chance(2) {
		b = append(b, pickOf(r, chineseJoins...)...)
		b = chineseClause(b, r)
	}
	if r.Chance(15) {
		b = append(b, "（"+chineseNouns.pick(r)+"）"...)
	}
	b = append(b, pickOf(r, "。", "。", "。", "。", "。", "？", "！")...)
	if quoted {
		b = append(b, "”"...)
	}
	return b
}

func chineseParagraph(b []byte, r *Rand) []byte {
	for range 2 + r.Intn(6) {
		b = chineseSentence(b, r)
	}
	return append(b, "\n\n"...)
}
